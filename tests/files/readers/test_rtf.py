import pytest
from hypothesis import given, settings

from spscanner_rag.files.readers import rtf as rtf_module
from spscanner_rag.files.readers.rtf import read_rtf
from tests.small_files import assert_all_read, texts_of_words


def rtf(body: str) -> bytes:
    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Cyr;}}"
    styles = r"{\stylesheet{\s0 Normal;}{\s1 heading 1;}}"
    return rf"{{\rtf1\ansi\ansicpg1252\uc1{fonts}{styles}{body}}}".encode("ascii")


def test_paragraphs_headings_notes_and_tables() -> None:
    document = read_rtf(
        rtf(
            r"\pard\s1 Peace\par\pard\plain The keeper\'92s wife \b signed\b0  it."
            r"{\super\chftn}{\footnote {\super\chftn} Of the light.} {\v secret}\par"
            r"\trowd\trhdr\intbl Part\cell Price\cell\row\trowd\intbl Rope\cell 12\cell"
            r"\row\pard {\f1\'cf\'f0} {\field{\*\fldinst{HYPERLINK x}}{\fldrslt here}}"
            r"{\*\shpinst{\shptxt A box}}{\header On top\par}\par"
        )
    )
    assert document.text == (
        "Peace\n\nThe keeper’s wife signed it.[1]\n\n[1] Of the light.\n\n"
        "Part | Price\nRope | 12\n\nПр hereA box\n\nOn top"
    )
    assert document.headings(document.text.index("wife")) == ("Peace",)
    assert document.place_name(len(document.text) - 1) == "page header"


def test_binary_pictures_and_what_follows() -> None:
    data = rtf(r"{\pict\bin6 XXXXXX}After \u8364?uro \u-10179?\u-8704?.\par")
    assert read_rtf(data.replace(b"XXXXXX", b"}}\\par")).text == "After €uro 😀."


@given(texts_of_words(min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    written: list[str] = []
    for text in texts:
        units = text.encode("utf-16-le")
        codes = [units[at] + 256 * units[at + 1] for at in range(0, len(units), 2)]
        written.append("".join(rf"\u{code}?" for code in codes))
    cells = "".join(rf"{text}\cell " for text in written)
    body = "".join(rf"{text}\par " for text in written)
    notes = "".join(rf"{{\footnote {text}}}" for text in written)
    document = read_rtf(rtf(rf"{body}\trowd\intbl {cells}\row\pard {notes}\par"))
    assert_all_read(document, texts * 3)


@pytest.mark.parametrize("depth", [20_000])
def test_no_nesting_is_too_deep_for_the_stack(depth: int) -> None:
    nested = b"{" * depth + b"Deep." + b"}" * depth
    assert read_rtf(b"{\\rtf1 " + nested + b" After.}").text == "Deep. After."


def test_more_open_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtf_module, "MOST_GROUPS", 1_000)
    with pytest.raises(ValueError, match="over 1,000 open groups"):
        read_rtf(b"{\\rtf1 " + b"{" * 1_001)


def test_an_unfinished_document_is_read_to_its_end() -> None:
    data = rtf(r"It rained.\par\'e")
    for length in range(len(data) - 8, len(data)):
        assert read_rtf(data[:length]).text.startswith("It rain")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"a\~b\_c\-d\{e\}\\f\par", "a b‑cd{e}\\f"),
        (r"one\tab two\line three\emdash four\par", "one two\nthree—four"),
        ("one\\\ntwo", "one\n\ntwo"),  # a line break after a backslash ends a paragraph
        (r"{\deleted gone }kept {\v hidden\plain seen}\par", "kept seen"),
        (r"{\v hidden\v0  seen}\par", "seen"),
        (r"{\deleted gone\deleted0  kept}\par", "kept"),
        (r"{\htmlrtf only RTF\htmlrtf0 }both\par", "both"),
        (r"{\upr{plain}{\*\ud{\u246?ber}}}\par", "öber"),
        (r"\uc2\u8364??uro \uc0\u8364 uro\par", "€uro €uro"),
        (r"\u8364\'80uro\par", "€uro"),  # a byte that stands for the character before
        (r"{\*\unknown x}after\par", "after"),
        (r"one\page two\sect three", "one\n\ntwo\n\nthree"),
        (r"\intbl one\cell two\par", "one | two"),  # a row without its end
        (r"\intbl one\par two\cell three\cell", "one two | three"),
        (r"{\header one\par two}{\footer one\par two}body\par", "body\n\none\ntwo"),
        (r"{\footnote a\cell b}body\par", "body\n\na b"),
        (r"{\f1\'ff}{\f9\'e9}\par", "яé"),  # a font of no table: the document's code
    ],
)
def test_words_of_control(body: str, text: str) -> None:
    assert read_rtf(rtf(body)).text == text


def test_comments_are_counted_and_left_out() -> None:
    document = read_rtf(rtf(r"It rained.{\*\annotation Did it?}{\annotation No.}\par"))
    assert document.text == "It rained."
    assert document.notes == ("comments are left out (2)",)


@pytest.mark.parametrize(
    ("code_page", "text"), [("1251", "Я"), ("99999", "ß"), ("", "ß")]
)
def test_letters_are_of_the_code_page(code_page: str, text: str) -> None:
    data = rf"{{\rtf1\ansi\ansicpg{code_page} \'df}}".encode("ascii")
    assert read_rtf(data).text == text


def test_outline_levels_are_headings_and_others_are_not() -> None:
    body = r"\pard\outlinelevel1 Peace\par\pard It rained.\par\outlinelevel9 No.\par"
    document = read_rtf(rtf(body))
    assert document.text == "Peace\n\nIt rained.\n\nNo."
    levels = [block.level for block in document.blocks if block.kind == "heading"]
    assert levels == [2]


def test_what_follows_the_end_is_not_read() -> None:
    assert read_rtf(rtf(r"It rained.\par") + b"{more}").text == "It rained."
    assert read_rtf(b"{\\rtf1 It}} rained.").text == "It"


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin as RTF does"):
        read_rtf(b"It rained.")
