"""Whole texts cut into units, with and without blocks."""

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.text_units import units_of_text

CHAT = "[12:01] Ann: Is it shut?\n[12:02] Ben: It is.\n[12:05] Ann: Good.\n"


def test_turns_of_a_chat_are_found() -> None:
    units = units_of_text(CHAT)
    assert [CHAT[unit.start : unit.end] for unit in units] == CHAT.splitlines()


def test_blocks_stand_for_turns() -> None:
    heading = Block(0, 24, "heading", level=1, title=CHAT[:24])
    first = units_of_text(CHAT, [heading])[0]
    assert first.start > 24
    assert first.model_text.startswith(CHAT[:24])


def test_other_texts_are_cut_by_their_language() -> None:
    text = "Die Mühle steht seit dem 18. Jahrhundert an der Elbe. Sie ist noch da."
    assert len(units_of_text(text)) == 2
