import pytest
from hypothesis import given, settings

from tests.small_files import NAMES, assert_all_read, odt, texts_of_words, zipped

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


def of_parts(**parts: str) -> bytes:
    """A document of these parts, with names that end with ``.xml``."""
    kind = {"mimetype": "application/vnd.oasis.opendocument.text"}
    return zipped(
        kind | {name.replace("__", "/") + ".xml": parts[name] for name in parts}
    )


def test_a_document_with_a_password_is_refused() -> None:
    manifest = (
        f"<manifest:manifest {NAMES}><manifest:file-entry><manifest:encryption-data/>"
        "</manifest:file-entry></manifest:manifest>"
    )
    with pytest.raises(ValueError, match="it has a password; save it without one"):
        read_odt(of_parts(**{"META-INF__manifest": manifest, "content": "<a/>"}))


def test_a_document_without_content_is_refused() -> None:
    with pytest.raises(ValueError, match=r"content\.xml is missing"):
        read_odt(of_parts(other="<a/>"))


def test_a_document_without_a_body_or_styles_is_read() -> None:
    content = f"<text:list {NAMES}><text:p>It rained.</text:p></text:list>"
    assert read_odt(of_parts(content=content)).text == "It rained."


def test_lists_go_on_and_begin_anew() -> None:
    inner = (
        "<text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list>"
    )
    body = (
        '<text:list text:style-name="N"><text:list-header><text:p>Head</text:p>'
        f"</text:list-header><text:soft-page-break/><text:list-item><text:p>one</text:p>"
        f"<text:p>more</text:p>{inner}</text:list-item>"
        '<text:list-item text:start-value="5"><text:h>five</text:h></text:list-item>'
        "<text:list-item><text:section><text:p>six</text:p></text:section>"
        "</text:list-item></text:list>"
    )
    document = read_odt(odt(body, styles=LISTS))
    assert document.text.split() == ("Head a) one more - inner e) five f) six".split())


def test_a_table_in_an_item_and_white_space() -> None:
    row = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
    row += "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
    inner = f"<table:table>{row.format('inner')}</table:table>"
    nested = row.format("a").replace("<text:p>b", f"{inner}<text:p>b")
    body = (
        f"<text:list><text:list-item><table:table>{nested}</table:table>"
        "</text:list-item></text:list>"
        "<text:p>one<text:tab/>two<text:line-break/>three<text:bookmark/></text:p>"
        "<text:p>note<text:note/></text:p><text:p/>"
    )
    text = read_odt(odt(body)).text
    assert "one two\nthree\n\nnote" in text
    for word in ("a", "b", "inner"):
        assert word in text.split("one")[0]


def test_embedded_objects_and_comments_have_a_note() -> None:
    body = f"<office:body {NAMES}><office:annotation/><text:p>It rained.</text:p>"
    parts = {"content": f"{body}</office:body>", "Object__content": "<a/>"}
    document = read_odt(of_parts(**parts))
    assert document.text == "It rained."
    assert document.notes == (
        "embedded objects are left out (1)",
        "comments are left out (1)",
    )


def test_an_edge_is_read_once() -> None:
    edge = "<style:{0}><text:p>Treaty</text:p></style:{0}>"
    styles = edge.format("header") + edge.format("footer") + "<style:header/>"
    document = read_odt(odt("<text:p>It rained.</text:p>", styles=styles))
    assert document.text == "It rained.\n\nTreaty"
    assert document.place_name(len(document.text) - 1) == "page header"
