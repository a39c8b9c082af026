"""PDF: pages, labels, running lines; broken, locked and scanned files."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf import (
    MOST_BROKEN,
    converted,
    read_pages,
    read_pdf,
)

PdfOf = Callable[..., bytes]


def read_here(data: bytes) -> TextFile:
    """Like `read_pdf`, but in this process, which is faster."""
    first, *pages = read_pages(data)
    return converted(first, pages)


PAGES = [
    [
        "The Treaty",
        "It rained in the harbour all day long.",
        "The council of the towns signed a",
        "1",
    ],
    [
        "The Treaty",
        "treaty with the captain (again).",
        "Then they left the harbour for good.",
        "2",
    ],
    [
        "The Treaty",
        "Nobody came back to the harbour.",
        "It is said that the well was dry.",
        "3",
    ],
]


def test_pages_without_running_lines(pdf_of: PdfOf) -> None:
    found = read_pdf(pdf_of(PAGES))
    assert (
        found.text
        == "It rained in the harbour all day long.\nThe council of the towns signed a\n"
        "treaty with the captain (again).\nThen they left the harbour for good.\n\n"
        "Nobody came back to the harbour.\nIt is said that the well was dry."
    )
    starts = [found.text.index(word) for word in ("It rained", "treaty with", "Nobody")]
    assert [(page.start, page.number, page.label) for page in found.pages] == [
        (start, number, str(number)) for number, start in enumerate(starts, start=1)
    ]
    assert found.notes == ('left out at page edges: "The Treaty" (pages 1 to 3)',)


def test_words_that_lines_divide_are_whole_again(pdf_of: PdfOf) -> None:
    body = [
        "Nobody came to the harbour.",
        "The repre-",
        "sentation of the towns",
        "was good.",
        "Then it rained.",
    ]
    pages = [
        ["The Treaty", *body[turn:], *body[:turn], str(n)]
        for n, turn in enumerate((0, 3, 4))
    ]
    found = read_pdf(pdf_of(pages))
    assert "-" not in found.text
    assert found.text.count("The representation\nof the towns") == 3
    assert [found.text[page.start :].split()[0] for page in found.pages] == [
        "Nobody",
        "was",
        "Then",
    ]


def test_labels_are_those_of_the_file(pdf_of: PdfOf) -> None:
    def label(writer: Any) -> None:
        writer.set_page_label(0, 1, style="/r")
        writer.set_page_label(2, 2, style="/D", start=7)

    found = read_pdf(pdf_of(PAGES, finish=label))
    assert [page.label for page in found.pages] == ["i", "ii", "7"]
    assert [page.name for page in found.pages] == [
        "page i (1)",
        "page ii (2)",
        "page 7 (3)",
    ]


def test_a_page_without_text_keeps_its_number(pdf_of: PdfOf) -> None:
    found = read_pdf(pdf_of([["One."], [], ["Three."]]))
    assert found.text == "One.\n\nThree."
    assert [(page.start, page.number) for page in found.pages] == [
        (0, 1),
        (4, 2),
        (6, 3),
    ]
    mostly = read_pdf(pdf_of([["One."], [], []]))
    assert mostly.notes == (
        "2 of 3 pages have no text; scanned pages need OCR, such as `--ocr eng` for"
        " English ones",
    )


def test_a_scan_is_refused(pdf_of: PdfOf) -> None:
    with pytest.raises(
        ValueError,
        match=r"^got a PDF without text on its 2 pages; .* need OCR, `--ocr eng`",
    ):
        read_pdf(pdf_of([[], []]))


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_a_password_for_reading_is_refused_and_one_for_changing_is_not(
    pdf_of: PdfOf, algorithm: str
) -> None:
    if algorithm != "RC4-128":
        pytest.importorskip("cryptography", reason="pypdf encrypts with it")

    def lock(user: str) -> Callable[[Any], None]:
        return lambda writer: writer.encrypt(user, "owner", algorithm=algorithm)

    with pytest.raises(
        ValueError,
        match=r"got an encrypted PDF that needs a password; .*qpdf --decrypt",
    ):
        read_pdf(pdf_of(PAGES, finish=lock("secret")))
    assert read_pdf(pdf_of(PAGES, finish=lock(""))).text == read_pdf(pdf_of(PAGES)).text


def form(*given: dict[str, Any]) -> Callable[[Any], None]:
    """Adds annotations to the first page of a PDF.

    Names of objects begin with a slash, a list is the parents.
    """
    from pypdf.generic import (
        ArrayObject,
        DictionaryObject,
        NameObject,
        NumberObject,
        TextStringObject,
    )

    def typed(value: Any) -> Any:
        if isinstance(value, str):
            return (
                NameObject(value) if value.startswith("/") else TextStringObject(value)
            )
        if isinstance(value, list):
            return ArrayObject(map(typed, value))
        if type(value) is dict:
            return made(value)
        return NumberObject(value) if type(value) is int else value

    def made(values: dict[str, Any]) -> Any:
        return DictionaryObject(
            {NameObject(f"/{key}"): typed(value) for key, value in values.items()}
        )

    def add(writer: Any) -> None:
        widgets, fields = [], []
        for field in given:
            parent = (
                writer._add_object(made(field["Parent"])) if "Parent" in field else None
            )
            own = {**field, "Parent": parent} if parent else field
            widgets.append(
                writer._add_object(
                    made({"Type": "/Annot", "Subtype": "/Widget", **own})
                )
            )
            if parent:
                parent.get_object()[NameObject("/Kids")] = ArrayObject(widgets[-1:])
            fields.append(parent or widgets[-1])
        writer.pages[0][NameObject("/Annots")] = ArrayObject(widgets)
        writer._root_object[NameObject("/AcroForm")] = made(
            {"Fields": ArrayObject(fields)}
        )

    return add


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"FT": "/Tx", "T": "tenant", "V": "Bob Hale"}, "tenant: Bob Hale"),
        (
            {"FT": "/Tx", "T": "f1", "TU": "Name of the mill", "V": "Old\nMill"},
            "Name of the mill: Old Mill",
        ),
        (
            {
                "FT": "/Btn",
                "T": "agreed",
                "V": "/Yes",
                "AS": "/Yes",
                "AP": {"N": {"Yes": {}, "Off": {}}},
            },
            "agreed: Yes",
        ),
        (
            {"FT": "/Ch", "T": "town", "Opt": ["Riga", "Cork", "Nice"], "V": "Nice"},
            "town: Nice (choices: Riga, Cork, Nice)",
        ),
        (
            {"FT": "/Ch", "T": "town", "Opt": ["Riga", "Cork"], "Ff": 0},
            "town (choices: Riga, Cork)",
        ),
        (
            {
                "FT": "/Ch",
                "T": "town",
                "Opt": ["Riga", "Cork"],
                "V": "Cork",
                "Ff": 1 << 17,  # a list that drops down, of which one is seen
            },
            "town: Cork",
        ),
        (
            {"T": "city", "Parent": {"FT": "/Ch", "T": "home", "V": "Riga"}},
            "home.city: Riga",
        ),
        ({"Subtype": "/FreeText", "Contents": "Paid on 3 May."}, "Paid on 3 May."),
    ],
)
def test_what_is_typed_into_a_form_is_read(
    pdf_of: PdfOf, field: dict[str, Any], expected: str
) -> None:
    found = read_here(
        pdf_of(
            [["A form."], ["Its end."]],
            finish=form(field, field, {"FT": "/Tx", "T": "empty"}),
        )
    )
    assert found.text == f"A form.\n\n{expected}\n\nIts end."
    assert [page.start for page in found.pages] == [
        0,
        len(found.text) - len("Its end."),
    ]
    assert read_here(pdf_of([[]], finish=form(field))).text == expected
    off = {"FT": "/Btn", "T": "no", "V": "/Off"}
    assert read_here(pdf_of([["A form."]], finish=form(off))).text == "A form."


def test_what_of_a_form_is_not_read_is_counted(pdf_of: PdfOf) -> None:
    drops_down = {
        "FT": "/Ch",
        "T": "town",
        "Opt": ["", "Riga", "Cork", "Nice"],
        "V": "Cork",
        "Ff": 1 << 17,
    }
    empty = drops_down | {"T": "home", "V": ""}
    comment = {"Subtype": "/Text", "Contents": "Is this right?"}
    mark = {"Subtype": "/Highlight"}
    document = read_here(
        pdf_of([["A form."]], finish=form(drops_down, empty, comment, mark))
    )
    assert document.text == "A form.\n\ntown: Cork"
    assert document.notes == (
        "choices of lists in the form that are not shown are left out (5)",
        "comments are left out (1)",
    )


def test_a_long_list_box_is_read_in_part_with_a_note(pdf_of: PdfOf) -> None:
    choices = [f"town {number}" for number in range(1_001)]
    field = {"FT": "/Ch", "T": "town", "Opt": choices}
    fields = [field, *[{"Subtype": "/FreeText", "Contents": "Paid."}] * 1_000]
    document = read_here(pdf_of([["A form."]], finish=form(*fields)))
    assert "town 854, town 855" in document.text
    assert document.notes == (
        "choices of lists in the form that are not shown are left out (1)",
        "annotations of pages with over 1,000 are left out (1)",
    )


def sized(pdf_of: PdfOf, *lines: tuple[float, str]) -> bytes:
    """A page of lines of letters with a given size; a negative size is bold."""

    def set_lines(writer: Any) -> None:
        from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

        page = writer.pages[0]
        fonts = page["/Resources"]["/Font"]
        bold = DictionaryObject(fonts["/F1"].get_object())
        bold[NameObject("/BaseFont")] = NameObject("/Helvetica-Bold")
        fonts[NameObject("/F2")] = writer._add_object(bold)
        stream = DecodedStreamObject()
        shown = "".join(
            f"/F{1 + (size < 0)} {abs(size)} Tf ({text}) Tj T*\n"
            for size, text in lines
        )
        stream.set_data(f"BT 30 TL 60 780 Td\n{shown}ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)

    return pdf_of([["x"]], finish=set_lines)


PROSE = (11.0, "It rained in the harbour all day long, and nobody came.")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [(20, "The Treaty"), PROSE, (14, "Its end"), PROSE],
            [("The Treaty", 1), ("Its end", 2)],
        ),
        (
            [(20, "A long title"), (20, "in two lines"), PROSE],
            [("A long title in two lines", 1)],
        ),
        ([(-11, "Terms"), PROSE, (-11, "This is bold."), PROSE], [("Terms", 1)]),
        ([(16, "1"), PROSE, (11.5, "hardly larger"), PROSE], []),
        ([(-16, "Terms"), PROSE, (-11, "Rent"), PROSE], [("Terms", 1), ("Rent", 2)]),
    ],
)
def test_headings_are_lines_in_larger_or_bold_letters(
    pdf_of: PdfOf, lines: Sequence[tuple[float, str]], expected: list[tuple[str, int]]
) -> None:
    found = read_here(sized(pdf_of, *lines))
    assert [(block.title, block.level) for block in found.blocks] == expected
    assert all(
        found.text[block.start : block.end].split() == block.title.split()
        for block in found.blocks
    )


def test_a_pdf_that_takes_too_long_is_read_in_part(
    pdf_of: PdfOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pdf_of([["One."], ["Two."]])
    with pytest.raises(
        ValueError, match=r"^got a PDF that cannot be read \(nothing in 0 seconds\)"
    ):
        read_pdf(data, seconds=0)

    def nobody_waits() -> None:
        raise InterruptedError("gone")

    with pytest.raises(InterruptedError, match="gone"):
        read_pdf(pdf_of([["One."]] * 2_000), check=nobody_waits)
    monkeypatch.setattr("spscanner_rag.files.readers.pdf.MOST_CHARACTERS", 6)
    found = read_here(data)
    assert found.text == "One."
    assert found.notes == (
        "read 1 of 2 pages, which took all the allowed time or memory: split the file",
    )


def test_damaged_files_are_read_or_told_in_one_line(
    pdf_of: PdfOf, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, chance = pdf_of(PAGES), random.Random(0)
    for _ in range(40):
        data = bytearray(
            whole[: chance.randrange(20, len(whole))]
            if chance.random() < 0.5
            else whole
        )
        for _ in range(chance.randrange(8)):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        told = None
        try:
            read_here(bytes(data))
        except ValueError as error:
            told = str(error)
        assert told is None or (
            told.startswith("got ") and len(told) < 400 and "\n" not in told
        )
    assert capfd.readouterr() == ("", "")


def test_pages_that_a_file_only_claims_are_bounded(pdf_of: PdfOf) -> None:
    data = pdf_of([["One."]]).replace(b"/Count 1", b"/Count 999999")
    first, *pages = read_pages(data)
    assert len(pages) <= MOST_BROKEN + 1
    if any(page["parts"] for page in pages):
        found = converted(first, pages)
        assert found.text == "One."
        assert len(found.pages) == len(pages)
