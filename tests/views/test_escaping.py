"""What cannot be shown is written out, and markup stays text."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.views.escaping import (
    encodable,
    escaped,
    escaped_line,
    one_line,
    visible,
)


def test_what_cannot_be_shown_is_written_out() -> None:
    assert visible("a\x1b]8;;x\x07b") == r"a\x1b]8;;x\x07b"
    assert visible("\x9b31m \x7f \b \r") == r"\x9b31m \x7f \x08 \x0d"
    assert visible("\u202eevil\u2066\ud800\U000e0041") == r"\u202eevil\u2066\ud800\U000e0041"
    assert visible("[bold] [/INST] <script>") == "[bold] [/INST] <script>"
    assert visible("tab\tand\r\nlines\n") == "tab\tand\nlines\n"
    assert visible("Ωμέγα 東京 👩‍👩‍👧 שלום") == "Ωμέγα 東京 👩‍👩‍👧 שלום"
    assert one_line(" a\n\n b\t\u00a0c\x0bd ") == r"a b c\x0bd"


@given(st.text(st.characters(), max_size=40) | st.text("\x1b\r\n\u202e\ud800\x85a", max_size=20))
def test_nothing_dangerous_is_left(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode()  # no lone surrogate
    for character in shown:
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in {
            *("LRE", "RLE", "LRO", "RLO", "PDF"),
            *("LRI", "RLI", "FSI", "PDI"),
        }


def test_markup_stays_text() -> None:
    assert escaped("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert escaped("a\u202eb\x1b[31m\ud800").count("<code>") == 3
    assert "\u202e" not in escaped("\u202e")
    assert escaped_line('a\n\x1b"<b>') == "a \\x1b&quot;&lt;b&gt;"


def test_what_an_output_cannot_hold_is_written_out() -> None:
    assert encodable("é", "latin-1") == "é"
    assert encodable("é東", "ascii") == r"\xe9\u6771"
