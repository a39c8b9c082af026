"""Characters that cannot be shown are written out, and markup stays text."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.escaping import (
    csv_cell,
    encodable,
    escaped,
    markdown_code,
    markdown_text,
    one_line,
    unbroken,
    visible,
)


def test_what_cannot_be_shown_is_written_out() -> None:
    assert visible("a\x1b]8;;x\x07b") == r"a\x1b]8;;x\x07b"
    assert visible("\x9b31m \x7f \b \r") == r"\x9b31m \x7f \x08 \x0d"
    assert (
        visible("\u202eevil\u2066\ud800\U000e0041")
        == r"\u202eevil\u2066\ud800\U000e0041"
    )
    assert visible("[bold] [/INST] <script>") == "[bold] [/INST] <script>"
    assert visible("tab\tand\r\nlines\n") == "tab\tand\nlines\n"
    assert visible("Ωμέγα 東京 👩‍👩‍👧 שלום") == "Ωμέγα 東京 👩‍👩‍👧 שלום"
    assert one_line(" a\n\n b\t\u00a0c\x0bd ") == r"a b c\x0bd"


@given(
    st.text(st.characters(), max_size=40)
    | st.text("\x1b\r\n\u202e\ud800\x85a", max_size=20)
)
def test_nothing_dangerous_is_left(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode()  # no lone surrogate is left
    for character in shown:
        assert character in "\n\t" or unicodedata.category(character) not in (
            "Cc",
            "Cs",
            "Zl",
            "Zp",
        )
        assert unicodedata.bidirectional(character) not in {
            *("LRE", "RLE", "LRO", "RLO", "PDF"),
            *("LRI", "RLI", "FSI", "PDI"),
        }


def test_what_shows_as_nothing_is_written_out() -> None:
    assert (
        visible("a\u200bb\xadc\u034fd\u3164e\U000e0100")
        == r"a\u200bb\xadc\u034fd\u3164e\U000e0100"
    )
    assert (
        visible("❤\ufe0f \u0646\u200c\u0647") == "❤\ufe0f \u0646\u200c\u0647"
    )  # emoji and Persian need them


def test_a_line_keeps_its_spaces_and_has_no_end() -> None:
    assert unbroken("a  b\tc\r\nd\re") == r"a  b\x09c\x0ad\x0de"


def test_markdown() -> None:
    assert (
        markdown_text("a|b\n<i> & [x](y) `c` *d* recall_at_5")
        == r"a\|b &lt;i&gt; &amp; \[x\](y) \`c\` \*d\* recall_at_5"
    )
    assert markdown_code("a|b") == r"`a\|b`"
    assert markdown_code("a``b\n`") == "``` a``b ` ```"
    assert markdown_code("") == "`  `"


def test_a_cell_of_a_spreadsheet_is_no_formula() -> None:
    for text in ("=1", "@SUM(1)", "+1+1", "-2+3", "\t=1", "\r\n=1", "\n@x", "＝1"):
        assert str(csv_cell(text)).startswith("'")
    assert csv_cell("\r=1") == r"\x0d=1"
    assert csv_cell("=a\nb") == "'=a b"
    for kept in (-3.2, 5, None, "-3.2", "+1e5", "a=b", ""):
        assert csv_cell(kept) == kept


def test_markup_stays_text() -> None:
    assert escaped("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert escaped("a\u202eb\x1b[31m\ud800").count("<code>") == 3
    assert "\u202e" not in escaped("\u202e")


def test_what_an_output_cannot_hold_is_written_out() -> None:
    assert encodable("é", "latin-1") == "é"
    assert encodable("é東", "ascii") == r"\xe9\u6771"
