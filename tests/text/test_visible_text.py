"""What is shown of a text with markup, and where it is in the text."""

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.visible_text import VisibleText, shown

PARTS = st.lists(
    st.tuples(st.text("ab ", max_size=3), st.sampled_from(["", "<b>", "&amp;", "<br>"]))
)
SHOWN = {"<b>": "", "&amp;": "&", "<br>": " "}


@given(PARTS)
def test_every_character_is_shown_once_and_has_its_place(
    parts: list[tuple[str, str]],
) -> None:
    text = ""
    expected = ""
    markup = []
    for words, mark in parts:
        text += words
        expected += words
        if mark:
            start, text = len(text), text + mark
            markup.append(Block(start, len(text), "markup", title=SHOWN[mark]))
            expected += SHOWN[mark]
    visible = VisibleText(text, markup)
    assert visible.text == expected == shown(text, 0, len(text), markup)
    for offset, character in enumerate(expected):
        start, end = visible.original_span(offset, offset + 1)
        assert text[start:end] in (character, "&", "<")
    all_text = Block(0, len(text), "item")
    for block in visible.blocks([all_text]):
        assert (block.start, block.end) == (0, len(expected))
