"""What of a Markdown text is neither read nor shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.markdown_markup import markup_of
from spscanner_rag.text.visible_text import shown

DATA = "data:image/png;base64," + "aB3+" * 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The <span class="x">rent</span> is due.', "The rent is due."),
        ("One<br>two<br/>three", "One two three"),
        ("40&nbsp;marks &amp; &#163;3", "40\xa0marks & £3"),
        ("It is <!-- not\nshown --> shown.", "It is  shown."),
        ("<style>p {color: red}</style>Text", "Text"),
        ("<script>let a = 1 < 2;</script>Text", "Text"),
        (f"See ![the plan]({DATA}) of it.", "See the plan of it."),
        (f'See ![]({DATA} "title") of it.', "See  of it."),
        (f"[picture]({DATA})", "[picture]"),
        (f'<img src="{DATA}" alt="x"> It rained.', "  It rained."),
        (f"[1]: {DATA}", "[1]: "),
        ("snake\\_case \\* two", "snake_case * two"),
        ("He pays <del>late</del> early.", "He pays ~~late~~ early."),
        ("`<b>code</b>` and ``a`<i>`` end", "`<b>code</b>` and ``a`<i>`` end"),
        ("List<Item> and a < b > c and <https://x.org>", None),
        ("A & B, AT&T; R&D", None),
        ("![alt](picture.png) [text](https://x.org)", None),
        ("<!-- never closed, <script> neither", None),
        ("a \\alpha b", None),
    ],
)
def test_what_is_shown(text: str, expected: str | None) -> None:
    markup = list(markup_of(text, []))
    assert shown(text, 0, len(text), markup) == (text if expected is None else expected)


SIGNS = "<b> </b> <!-- --> <script> </script> &amp; ` `` a \\ * ![ ]( ) <".split()


@given(st.lists(st.sampled_from([*SIGNS, DATA, " ", "\n"])).map("".join))
def test_markup_is_in_order_and_disjoint(text: str) -> None:
    position = 0
    for block in markup_of(text, []):
        assert (
            position <= block.start < block.end <= len(text) or block.start == block.end
        )
        position = block.end


@pytest.mark.parametrize(
    "part",
    ["<!--", "<b ", "`a ", "<script>", "![a](data:a/b,", "\\", "data:a/b;base64,"],
)
def test_long_texts_of_openings_take_linear_time(part: str) -> None:
    assert list(markup_of(part * 20_000, [])) == []
