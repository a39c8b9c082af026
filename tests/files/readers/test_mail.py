from email.message import EmailMessage

import pytest
from hypothesis import given, settings

from spscanner_rag.files.readers import mail as mail_module
from spscanner_rag.files.readers.mail import mail_work, read_mail
from tests.small_files import assert_all_read, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

BODY = """Dear all,

The keeper signed
the treaty.

On Monday Bob wrote:
> Who signed
> it?
"""


def mail(
    body: str = BODY, *, encoding: str = "base64", subject: str = "Peace"
) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Ann <ann@example.org>"
    message["Subject"] = subject
    message.set_content(body, cte=encoding)
    return message


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "7bit"])
def test_lines_have_numbers_and_quotations_are_marked(encoding: str) -> None:
    document = read_mail(bytes(mail(encoding=encoding)))
    assert document.text == (
        "Peace\n\nFrom: Ann <ann@example.org>\n\nDear all,\n\nThe keeper signed\n"
        "the treaty.\n\nOn Monday Bob wrote:\n\nWho signed\nit?"
    )
    places = [
        document.place_name(document.text.index(text)) for text in ("the t", "it?")
    ]
    assert places == ["line 4", "line 8, quoted"]
    assert document.metadata == {"From": "Ann <ann@example.org>", "Subject": "Peace"}


def test_what_follows_an_original_message_is_quoted() -> None:
    document = read_mail(bytes(mail("Yes.\n\n-----Original Message-----\nWhy?\n")))
    assert document.place_name(document.text.index("Why")) == "line 4, quoted"


def test_attachments_are_listed_and_mails_in_a_mail_are_read() -> None:
    message = mail()
    message.add_attachment(
        b"x" * 5_000, maintype="image", subtype="png", filename="ä.png"
    )
    message.add_attachment(mail("Inner.", subject="Old"))
    document = read_mail(bytes(message))
    assert "Attachment: ä.png (image/png, 4 KiB)" in document.text
    assert document.notes == ("attachments are listed, not read (1)",)
    where = document.place_name(document.text.index("Inner."))
    assert where == "attached mail 1, line 1"


def test_a_stub_gives_way_to_the_page() -> None:
    message = mail("See the page.\n")
    message.add_alternative(f"<p>{'It rained. ' * 9}</p>", subtype="html")
    assert "It rained." in read_mail(bytes(message)).text
    same = mail("It rained all day.\n")
    same.add_alternative("<p>It rained all day.</p>", subtype="html")
    assert read_mail(bytes(same)).text.count("rained") == 1


@given(texts_of_words(min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    lines = [f"{'> ' * (number % 3)}{text}" for number, text in enumerate(texts)]
    message = mail("\n".join(lines), subject=texts[0])
    message.add_attachment("<p>" + "</p><p>".join(texts) + "</p>", subtype="html")
    del message.get_payload()[1]["Content-Disposition"]
    assert_all_read(read_mail(bytes(message)), [*texts, *texts, texts[0]])


def test_thousands_of_nested_parts_are_refused_in_the_process_apart() -> None:
    parts = [
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n)
        for n in range(2_000)
    ]
    data = b"From: a\n" + b"".join(parts)
    with pytest.raises(ValueError, match="nested too deep"):
        read_mail(data)
    assert mail_work(data) > 2**24


def test_strange_encodings_do_not_end_reading() -> None:
    data = (
        b"From: =?x-none?Q?=FF?=\nSubject: =?utf-8?B?broken\n"
        b"Content-Type: text/plain; charset=x-none\n\nIt rained \xff."
    )
    assert "It rained" in read_mail(data).text


def test_a_file_without_headers_is_refused() -> None:
    with pytest.raises(ValueError, match="headers of a mail"):
        read_mail(b"It rained.\n\nAll day.")


def raw(kind: str, body: str, *, encoding: str = "utf-8") -> bytes:
    """A mail with one part."""
    return f"From: a\nContent-Type: {kind}\n\n{body}".encode(encoding)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("text/plain; format=flowed", "It \nrained.\nAll day.", "It rained.\nAll day."),
        ("text/plain; format=flowed; delsp=yes", "It ra \nined.", "It rained."),
        ("text/plain; format=flowed", " From here.\n-- \nAnn", "From here.\n--\nAnn"),
        ("text/plain; format=flowed", "> Why \nNo.", "Why\n\nNo."),
        ("text/html", "<p>It <b>rained</b>.</p>", "It rained."),
    ],
)
def test_bodies_of_several_kinds(kind: str, body: str, text: str) -> None:
    document = read_mail(raw(kind, body))
    assert document.text == f"From: a\n\n{text}"


@pytest.mark.parametrize("kind", ["mixed", "alternative"])
def test_a_page_that_cannot_be_read_does_not_hide_the_mail(kind: str) -> None:
    page = "<div>" * 5000
    data = raw(
        f"multipart/{kind}; boundary=b",
        "--b\nContent-Type: text/plain\n\nIt rained.\n"
        f"--b\nContent-Type: text/html\n\n{page}\n--b--\n",
    )
    document = read_mail(data)
    assert document.text == "From: a\n\nIt rained."
    notes = " ".join(document.notes)
    assert ("a body in HTML is left out: got elements" in notes) == (kind == "mixed")


def test_letters_that_are_no_utf_8_are_windows_ones() -> None:
    document = read_mail(raw("text/plain", "It rained in Käl.", encoding="cp1252"))
    assert document.text.endswith("It rained in Käl.")


def test_the_last_of_several_forms_without_a_plain_one_is_read() -> None:
    message = EmailMessage()
    message["From"] = "a"
    message.make_alternative()
    for page in ("<p>Old.</p>", "<p>New.</p>"):
        message.add_alternative(page, subtype="html")
    assert read_mail(bytes(message)).text == "From: a\n\nNew."


def test_files_beside_a_page_are_listed_though_the_plain_form_is_read() -> None:
    message = mail("It rained all day.\n")
    message.add_alternative("<p>It rained.</p>", subtype="html")
    related = EmailMessage()
    related.make_related()
    related.add_related(b"x", "image", "png", filename="rain.png")
    message.attach(related)
    document = read_mail(bytes(message))
    assert "It rained all day." in document.text
    assert "Attachment: rain.png (image/png" in document.text


def test_the_number_of_mails_and_parts_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = mail()
    for number in range(4):
        message.add_attachment(mail(f"Inner {number}.", subject=f"Mail {number}"))
    monkeypatch.setattr(mail_module, "_MOST_MAILS", 2)
    document = read_mail(bytes(message))
    assert "Inner 1." in document.text
    assert "Inner 2." not in document.text
    assert "2 further mails are left out" in document.notes
    monkeypatch.setattr(mail_module, "_MOST_PARTS", 1)
    assert "parts after the first 1 are left out" in read_mail(bytes(message)).notes
