"""HTML: the text that a page shows, and text that it does not show."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import DEEPEST, read_html
from spscanner_rag.files.readers.text_builder import LONGEST_TITLE


def page(body: str) -> TextFile:
    return read_html(f"<!doctype html><html><body>{body}</body></html>".encode())


def blocks(found: TextFile) -> Sequence[tuple[str, str]]:
    return [(block.kind, found.text[block.start : block.end]) for block in found.blocks]


def test_what_is_not_shown_is_not_read() -> None:
    found = read_html(
        b"<head><title>T</title><style>p{}</style></head><body><script>alert('<p>no"
        b"</p>')</script>"
        b"<p>One <b>bold</b>&nbsp;&amp; plain.<!-- no --><p hidden>no<p style='display:"
        b" none'>no</p>"
        b"<noscript>no</noscript><svg><text>no</text></svg><template><p>no</p>"
        b"</template><p>Two.",
    )
    assert found.text == "One bold & plain.\n\nTwo."


def test_headings_lists_and_fences() -> None:
    found = page(
        "<h1>Big\n <i>News</i></h1><p>One"
        " para<br>graph.<ol><li>first<li>second<ul><li>inner</ul></ol><pre>\ncode\n "
        " more\n</pre><h2>Next</h2>"
    )
    assert (
        found.text
        == "Big News\n\nOne para\ngraph.\n\n1. first\n\n2. second\n\n- inner\n\ncode\n "
        " more\n\nNext"
    )
    assert blocks(found) == [
        ("heading", "Big News"),
        ("fence", "code\n  more"),
        ("heading", "Next"),
    ]
    assert [(block.level, block.title) for block in found.blocks if block.level] == [
        (1, "Big News"),
        (2, "Next"),
    ]
    assert not page(f"<h1>{'word ' * LONGEST_TITLE}</h1>").blocks


def test_rows_know_their_header() -> None:
    found = page(
        "<table><thead><tr><th>Item<th>Price</thead><tr><td>Nut</td><td><p>3</p></td>"
        "</tr><tr><td>Bolt<td>4<tr><td"
        " colspan=2>All prices in marks.</table>"
    )
    assert found.text == "Item | Price\nNut | 3\nBolt | 4\n\nAll prices in marks."
    assert blocks(found) == [
        ("header", "Item | Price"),
        ("row", "Nut | 3"),
        ("row", "Bolt | 4"),
    ]
    assert [block.header for block in found.blocks] == [None, (0, 12), (0, 12)]


def test_a_table_that_lays_out_a_page_is_text() -> None:
    found = page(
        "<table><tr><td>Menu<td><h2>News</h2>It"
        " rained.<table><tr><td>a<td>b</table>Then.</table>End."
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
            b"<meta http-equiv=x content='text/html; charset=Shift_JIS'><p>"
            + "東京".encode("shift_jis"),
            "東京",
        ),
        ("<p>naïve".encode("utf-16"), "naïve"),
        (b"<meta charset=rot13><p>plain", "plain"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert read_html(data).text == text


def test_binary_data_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^got binary data \(a zero byte at 4\); expected HTML"
    ):
        read_html(b"<p>a\0b")


@pytest.mark.parametrize(
    "part", ["<div>", "<div></p>", "<b>", "<table><tr><td>", "<ul><li>"]
)
def test_five_megabytes_of_nested_tags_are_refused_at_once(part: str) -> None:
    with pytest.raises(
        ValueError, match=f"^got elements nested more than {DEEPEST:,} deep"
    ):
        page(part * (5_000_000 // len(part)))


@pytest.mark.parametrize(
    "part", ["<!--", "<", "<a '", "&", "<script>", "<a a=", "</p>", "<p>"]
)
def test_long_runs_of_broken_tags_are_read(part: str) -> None:
    assert "end" in page("end<hr>" + part * (200_000 // len(part))).text


@given(
    st.lists(
        st.sampled_from(
            "<p> </p> <li> <ul> </ul> <table> <tr> <td> </td> </table> <pre> </pre>"
            " <h1> a b".split()
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<ol start=9><li>a<li>b</ol><ol><li>c</ol>", "9. a|10. b|1. c"),
        ("<ol start=0><li>a<li value=-3>b<li>c</ol>", "0. a|-3. b|-2. c"),
        ("<ol reversed><li>a<ol><li>x<li>y</ol><li>b</ol>", "2. a|1. x|2. y|1. b"),
        (
            "<ol><li>x</ol><ol hidden><li>x</ol><ol reversed start=7><li>a<li>b</ol>",
            "1. x|7. a|6. b",
        ),
        ("<ol type=A start=26><li>a<li>b</ol>", "Z. a|AA. b"),
        ("<ol type=i><li>a<li>b<li type=1>c<li>d</ol>", "i. a|ii. b|3. c|iv. d"),
        ("<ol style='list-style-type: upper-roman' start=4><li>a</ol>", "IV. a"),
        ("<ol style='list-style: none'><li>(a) x<li>(b) y</ol>", "(a) x|(b) y"),
        ("<ol type=none><li>(a) x<li>(b) y</ol>", "(a) x|(b) y"),
        (
            "<ol start=99999999999 type=a><li>a</ol><ol start=5000 type=I><li>b</ol>",
            "a. a|5000. b",
        ),
        ("<ol start=x><li value=''>a</ol><ul type=a><li value=4>b</ul>", "1. a|- b"),
    ],
)
def test_numbers_of_lists(body: str, expected: str) -> None:
    assert page(body).text.split("\n\n") == expected.split("|")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("<tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e", "a | b\na | c\nd | e"),
        ("<tr><td>a<td rowspan=0>b<tr><td>c<tr><td>d", "a | b\nc | b\nd | b"),
        ("<tr><td colspan=2 rowspan=2>a<td>b<tr><td>c", "a |  | b\na |  | c"),
        (
            "<tr><td>a<td colspan=3>b<tr><td>c<td>d<td>e<td>f",
            "a | b |  |\nc | d | e | f",
        ),
        ("<tr><td colspan=x rowspan=-1>a<td>b", "a | b"),
    ],
)
def test_merged_cells_keep_the_columns(rows: str, expected: str) -> None:
    assert page(f"<table>{rows}</table>").text == expected


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        (
            "<tr><td><b>City</b><td><strong>People</strong><tr><td>Riga<td>910",
            "City | People",
        ),
        ("<tr><td><th>1990<th>2000<tr><th>Riga<td>910<td>760", "| 1990 | 2000"),
        (
            (
                "<tr><td"
                " colspan=2><b>Towns</b><tr><td><b>City</b><td><b>People</b><tr>"
                "<td>Riga<td>910"
            ),
            "City | People",
        ),
        (
            "<tr><td>City<td>Year<td>People<tr><td>Riga<td>1990<td>910",
            "City | Year | People",
        ),
        ("<tr><th>Tenant<td>Anne Reed<tr><th>Rent<td>40 marks", None),
        ("<tr><td><b>Tenant</b><td>Anne<tr><td><b>Rent</b><td>40", None),
        ("<tr><td><b>Tenant:</b><td><b>Anne</b><tr><td>Rent:<td>40", None),
        ("<tr><td><b>a</b><td><b>b</b><tr><td><b>c</b><td><b>d</b>", None),
    ],
)
def test_a_header_is_marked_or_looks_so(rows: str, header: str | None) -> None:
    found = page(f"<table>{rows}</table>")
    last = found.blocks[-1].header
    assert (last and found.text[slice(*last)]) == header


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("It fell.<sup>1</sup> It", "It fell.¹ It"),
        ("10<sup>3</sup> m<sup>-2</sup>", "10³ m⁻²"),
        ("the 5<sup>th</sup>, so.<sup>[2]</sup> H<sub>2</sub>O", "the 5th, so.[2] H2O"),
    ],
)
def test_raised_numbers_stay_raised(body: str, expected: str) -> None:
    assert page(f"<p>{body}</p>").text == expected


def test_struck_text_is_marked_and_what_is_left_out_is_noted() -> None:
    found = page(
        "<p>The rent is <del>forty</del> <ins>fifty</ins> <s>marks</s><s> a year</s>."
        "<div class='cookie-banner'>We use cookies.</div><svg><text>Plan</text></svg>"
        "<svg></svg><div hidden><iframe></iframe></div><textarea>Typed</textarea>"
    )
    assert found.text == "The rent is ~~forty~~ fifty ~~marks a year~~.\n\nTyped"
    assert found.notes == (
        "left out banners about cookies or consent: 1",
        "left out words in drawings: 1",
    )


def test_headers_of_several_rows_and_without_rows() -> None:
    found = page(
        "<table><tr><th rowspan=2>City<th"
        " colspan=2>People<tr><th>1990<th>2000<tr><td>Riga<td>910<td>760</table>"
        "<table><tr><th>Lone<th>row</table>"
        "<table><thead><tr><td>Part<td>Price</thead><tbody><tr><td>Nut<td>3</table>"
    )
    assert blocks(found) == [
        ("header", "City | People |\nCity | 1990 | 2000"),
        ("row", "Riga | 910 | 760"),
        ("row", "Lone | row"),
        ("header", "Part | Price"),
        ("row", "Nut | 3"),
    ]
    assert found.blocks[1].header == (found.blocks[0].start, found.blocks[0].end)


TEX = "<annotation encoding='application/x-tex'>E</annotation>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            f"<math><semantics><mrow><mi>k</mi><mo>=</mo><mn>7</mn></mrow>{TEX}"
            f"</semantics></math>",
            "k=7",
        ),
        (
            "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn>"
            "</mfrac></math>",
            "(a+1)/2",
        ),
        (
            (
                "<math> <msup> <mi>r</mi> <mn>2</mn> </msup> <mtext> if </mtext>"
                " <mi>t</mi> </math>"
            ),
            "r^2 if t",
        ),
        (
            "<math><mroot><mi>x</mi><mn>3</mn></mroot><mo>&#x2062;</mo><msqrt><mn>2"
            "</mn></msqrt></math>",
            "3√x√2",
        ),
        (f"<math alttext='F'><semantics><mrow></mrow>{TEX}</semantics></math>", "E"),
        ("<math alttext='c^2'><mspace></mspace></math>", "c^2"),
        (
            "<img class='mwe-math-fallback-image-inline' alt='{\\displaystyle m=3}'>",
            "m=3",
        ),
        (
            "<math><munderover><mo>∑</mo><mi>i</mi><mn>9</mn></munderover><mi>k</mi>"
            "</math>",
            "∑_i^9 k",
        ),
        ("<script type='math/tex'>x < 5</script>", "x < 5"),
        (
            (
                "<span class=katex><span"
                f" class=katex-mathml><math><mi>u</mi>{TEX}</math></span><span"
                " class=katex-html aria-hidden=true>u</span></span>"
            ),
            "u",
        ),
    ],
)
def test_formulas_are_text_once(body: str, expected: str) -> None:
    assert page(f"<p>Let {body}</p>").text == f"Let {expected}"
    assert page(f"<table><tr><td>a<td>{body}</table>").text == f"a | {expected}"
    assert page(f"<div>{body} holds.<p>Then.").text == f"{expected} holds.\n\nThen."


def test_readings_stand_behind_their_word() -> None:
    found = page("<p><ruby>大<rp>(</rp><rt>おお</rt><rp>)</rp>阪<rt>さか</ruby>へ行く")
    assert found.text == "大阪(おおさか)へ行く"
    assert page("<p><ruby>a<rt>b<rt>c<p>d").text == "a(bc)\n\n(d)"


@pytest.mark.parametrize(
    "hidden",
    [
        "<p style='visibility: hidden'>no</p>",
        "<div style='VISIBILITY:\n collapse'><p>no</p></div>",
        "<dialog><p>no</p></dialog>",
        "<dialog id=x class=y>no</dialog>",
        "<div popover>no</div>",
        (
            "<div id='onetrust-banner-sdk'><p>We use"
            " cookies.</p><button>Accept</button></div>"
        ),
        (
            "<section class='site cookie-consent is-open'"
            " aria-label=x>no<ul><li>no</ul></section>"
        ),
        "<div role=dialog aria-label='Cookie banner'>no</div>",
        "<aside class='gdpr-popup'>no</aside>",
        (
            "<div class='eu-cookie-compliance-x'>no</div><div"
            " class='privacy-banner'>no</div>"
        ),
    ],
)
def test_what_is_hidden_or_a_banner_is_not_read(hidden: str) -> None:
    assert page(f"<p>One.{hidden}<p>Two.").text == "One.\n\nTwo."


@pytest.mark.parametrize(
    "shown",
    [
        "<dialog open>yes</dialog>",
        "<details><summary>yes</summary></details>",
        "<div class='cookie-recipes consent-form'>yes</div>",
        "<article class='cookie-notice'>yes</article>",
        "<div style='visibility: visible'>yes</div>",
    ],
)
def test_what_is_shown_is_read(shown: str) -> None:
    assert page(f"<p>One.</p>{shown}<p>Two.").text == "One.\n\nyes\n\nTwo."
    assert (
        read_html(b"<html><body style='visibility:hidden' class='cookie-bar'>yes").text
        == "yes"
    )
