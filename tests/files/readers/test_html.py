"""HTML: the text that a page shows, and its blocks."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import DEEPEST, read_html
from spscanner_rag.files.readers.text_builder import LONGEST_TITLE


def page(body: str) -> TextFile:
    return read_html("a.html", f"<!doctype html><html><body>{body}</body></html>".encode())


def blocks(found: TextFile) -> Sequence[tuple[str, str]]:
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


def test_what_is_not_shown_is_not_read() -> None:
    found = read_html(
        "a.html",
        b"<head><title>T</title><style>p{}</style></head><body><script>alert('<p>no</p>')</script>"
        b"<p>One <b>bold</b>&nbsp;&amp; plain.<!-- no --><p hidden>no<p style='display: none'>no</p>"
        b"<noscript>no</noscript><svg><text>no</text></svg><template><p>no</p></template><p>Two.",
    )
    assert found.text == "One bold & plain.\n\nTwo."


def test_headings_lists_and_fences() -> None:
    found = page(
        "<h1>Big\n <i>News</i></h1><p>One para<br>graph.<ol><li>first<li>second<ul><li>inner</ul></ol>"
        "<pre>\ncode\n  more\n</pre><h2>Next</h2>"
    )
    assert found.text == (
        "Big News\n\nOne para\ngraph.\n\n1. first\n\n2. second\n\n- inner\n\ncode\n  more\n\nNext"
    )
    assert blocks(found) == [("heading", "Big News"), ("fence", "code\n  more"), ("heading", "Next")]
    assert [(block.level, block.title) for block in found.blocks if block.level] == [
        (1, "Big News"),
        (2, "Next"),
    ]
    assert not page(f"<h1>{'word ' * LONGEST_TITLE}</h1>").blocks


def test_rows_know_their_header() -> None:
    found = page(
        "<table><thead><tr><th>Item<th>Price</thead><tr><td>Nut</td><td><p>3</p></td></tr>"
        "<tr><td>Bolt<td>4<tr><td colspan=2>All prices in marks.</table>"
    )
    assert found.text == "Item | Price\nNut | 3\nBolt | 4\n\nAll prices in marks."
    assert blocks(found) == [("header", "Item | Price"), ("row", "Nut | 3"), ("row", "Bolt | 4")]
    assert [block.header for block in found.blocks] == [None, (0, 12), (0, 12)]


def test_a_table_that_lays_out_a_page_is_text() -> None:
    found = page(
        "<table><tr><td>Menu<td><h2>News</h2>It rained.<table><tr><td>a<td>b</table>Then.</table>End."
    )
    assert found.text == "Menu\n\nNews\n\nIt rained.\n\na | b\n\nThen.\n\nEnd."
    assert blocks(found) == [("heading", "News"), ("row", "a | b")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<p>naïve".encode(), "naïve"),
        (b"<p>na\xefve \x93x\x94", "naïve “x”"),
        (b"<meta charset=iso-8859-1><p>na\xefve \x93x\x94", "naïve “x”"),
        ("<meta charset='koi8-r'><p>да".encode("koi8-r"), "да"),
        (
            b"<meta http-equiv=x content='text/html; charset=Shift_JIS'><p>" + "東京".encode("shift_jis"),
            "東京",
        ),
        ("<p>naïve".encode("utf-16"), "naïve"),
        (b"<meta charset=rot13><p>plain", "plain"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert read_html("a.html", data).text == text


def test_binary_data_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a\.html: got binary data \(a zero byte at 4\); expected HTML"):
        read_html("a.html", b"<p>a\0b")


@pytest.mark.parametrize("part", ["<div>", "<div></p>", "<b>", "<table><tr><td>", "<ul><li>"])
def test_five_megabytes_of_nested_tags_are_refused_at_once(part: str) -> None:
    with pytest.raises(ValueError, match=f"a.html: got elements nested more than {DEEPEST:,} deep"):
        page(part * (5_000_000 // len(part)))


@pytest.mark.parametrize("part", ["<!--", "<", "<a '", "&", "<script>", "<a a=", "</p>", "<p>"])
def test_megabytes_of_broken_tags_are_read(part: str) -> None:
    assert "end" in page("end<hr>" + part * (1_000_000 // len(part))).text


@given(
    st.lists(
        st.sampled_from(
            "<p> </p> <li> <ul> </ul> <table> <tr> <td> </td> </table> <pre> </pre> <h1> a b".split()
        )
    )
)
def test_any_nesting_keeps_its_text(parts: list[str]) -> None:
    found = page("".join(parts))
    letters = [part for part in parts if part in "ab"]
    assert [each for each in found.text if each in "ab"] == letters
    end = 0
    for block in found.blocks:
        assert end <= block.start < block.end <= len(found.text)
        end = block.end
