import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, odt, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.odt import read_odt

LISTS = (
    '<text:list-style style:name="N"><text:list-level-style-number text:level="1"'
    ' style:num-format="a" style:num-suffix=")"/></text:list-style>'
)


def test_headings_lists_tables_and_notes() -> None:
    body = (
        '<text:h text:outline-level="2">Peace</text:h>'
        "<text:p>The keeper<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>Of the light.</text:p></text:note-body></text:note>"
        '<text:s text:c="2"/>signed <text:span>it</text:span>.</text:p>'
        '<text:list text:style-name="N"><text:list-item><text:p>Rope</text:p>'
        "</text:list-item><text:list-item><text:p>Sail</text:p></text:list-item>"
        "</text:list><table:table><table:table-header-rows><table:table-row>"
        "<table:table-cell><text:p>Part</text:p></table:table-cell><table:table-cell>"
        "<text:p>Price</text:p></table:table-cell></table:table-row>"
        "</table:table-header-rows><table:table-row><table:table-cell>"
        "<text:p>Rope</text:p></table:table-cell><table:table-cell><text:p>12</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    edge = "<style:master-page><style:footer><text:p>Page foot</text:p></style:footer>"
    document = read_odt(odt(body, styles=f"{LISTS}{edge}</style:master-page>"))
    assert document.text == (
        "Peace\n\nThe keeper[1] signed it.\n\nOf the light.\n\na) Rope\nb) Sail\n\n"
        "Part | Price\nRope | 12\n\nPage foot"
    )
    assert document.headings(document.text.index("signed")) == ("Peace",)
    assert document.place_name(len(document.text) - 1) == "page footer"


def test_deleted_text_is_not_read_and_comments_are_counted() -> None:
    body = (
        "<text:tracked-changes><text:p>Gone.</text:p></text:tracked-changes>"
        "<text:p>Here.<office:annotation><text:p>Why?</text:p></office:annotation>"
        "</text:p>"
    )
    document = read_odt(odt(body))
    assert document.text == "Here."
    assert document.notes == ("comments are left out (1)",)


@given(texts_of_words(min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    paragraphs = "".join(f"<text:p>{text}</text:p>" for text in texts)
    box = (
        f"<text:p><draw:frame><draw:text-box>{paragraphs}</draw:text-box></draw:frame>"
    )
    items = f"<text:list><text:list-item>{paragraphs}</text:list-item></text:list>"
    cell = f"<table:table-row><table:table-cell>{paragraphs}</table:table-cell>"
    table = f"<table:table>{cell}</table:table-row></table:table>"
    body = f"{paragraphs}{box}</text:p>{items}<text:section>{table}</text:section>"
    assert_all_read(read_odt(odt(body)), texts * 4)


def test_slides_have_their_number() -> None:
    body = "<draw:page><text:p>One.</text:p></draw:page>"
    document = read_odt(odt(body * 2, kind="presentation"))
    assert [place.name for place in document.places] == ["slide 1", "slide 2"]


@pytest.mark.parametrize("body", ["<text:p", f"<text:p>{' ' * 2**25}</text:p>"])
def test_a_broken_or_huge_document_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r"ODT|split the document"):
        read_odt(odt(body))
