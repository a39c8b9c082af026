import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, pptx, relations, shape, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.slides import read_slides

TABLE = (
    '<p:graphicFrame><a:tbl><a:tblPr firstRow="1"/>'
    + "".join(
        "<a:tr>"
        + "".join(
            f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"
            for text in row
        )
        + "</a:tr>"
        for row in (("Part", "Price"), ("Rope", "12"))
    )
    + "</a:tbl></p:graphicFrame>"
)


def test_slides_with_titles_tables_and_notes() -> None:
    document = read_slides(
        pptx(
            shape("It rained.", "Then not.") + shape("Weather", kind="title"),
            TABLE,
            notes={1: "Say it slowly."},
            hidden=[2],
        )
    )
    assert document.text == (
        "Weather\nIt rained.\nThen not.\n\nSay it slowly.\n\nPart | Price\nRope | 12"
    )
    assert document.place_name(document.text.index("Then")) == "slide 1"
    assert document.place_name(document.text.index("Say")) == "slide 1, notes"
    assert document.place_name(document.text.index("Rope")) == "slide 2 (hidden)"
    assert document.blocks[-1].kind == "row"
    assert document.blocks[-1].header is not None


@given(texts_of_words(min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    slides = [shape(text, kind="title") + shape(*texts) for text in texts]
    notes = dict(enumerate(texts, start=1))
    assert_all_read(read_slides(pptx(*slides, notes=notes)), texts * (len(texts) + 2))


def test_charts_and_diagrams_are_read() -> None:
    chart = (
        '<c xmlns:a="a"><a:ser><a:tx><a:v>Rain</a:v></a:tx>'
        "<a:cat><a:v>May</a:v></a:cat>"
        "<a:val><a:v>7</a:v></a:val></a:ser></c>"
    )
    parts = {
        "ppt/charts/chart1.xml": chart,
        "ppt/slides/_rels/slide1.xml.rels": relations(
            ("c", "chart", "../charts/chart1.xml"), ("m", "comments", "../c.xml")
        ),
        "ppt/c.xml": "<c/>",
    }
    document = read_slides(pptx(shape("It rained."), parts=parts))
    assert document.text.endswith("Rain: May: 7")
    assert document.notes == ("comments are left out (on 1 slides)",)


def test_a_bomb_and_an_entity_are_refused() -> None:
    laugh = '<!DOCTYPE p [<!ENTITY a "haha">]><p>&a;</p>'
    for part in (laugh, f"<p>{' ' * 2**25}</p>"):
        with pytest.raises(ValueError, match=r"DOCTYPE|split the presentation"):
            read_slides(pptx("", parts={"ppt/slides/slide1.xml": part}))
