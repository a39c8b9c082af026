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
