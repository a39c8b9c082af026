"""Turns of transcripts and chats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.turns import turns_of
from tests.fakes import EQUAL

TALKS = {
    "time and name": (
        ["[10:31] Olga: We sold it.", "[10:33] Jon P. Berg: For how much?",
         "[10:40] Olga: Ten marks.\nOnly ten."],
        ["10:31 Olga", "10:33 Jon P. Berg", "10:40 Olga"],
    ),
    "a phone's chat": (
        ["3/5/2024, 10:31 PM - Olga: Sold.", "3/5/2024, 10:33 PM - ~ Jo: O.",
         "4/5/2024, 7:00 AM - Olga: I."],
        ["3/5/2024, 10:31 PM Olga", "3/5/2024, 10:33 PM Jo", "4/5/2024, 7:00 AM Olga"],
    ),
    "name and time in brackets": (
        ["Olga (00:12):\nWe sold it.", "Jon Berg (00:19):\nFor how much?\nAnd when?",
         "Olga (01:07):\nTen marks."],
        ["00:12 Olga", "00:19 Jon Berg", "01:07 Olga"],
    ),
    "name and time above": (
        ["Olga Berg  10:31 AM\nWe sold it.", "Jon  10:33 AM\nOh.",
         "Olga Berg  10:34 AM\nYes."],
        ["10:31 AM Olga Berg", "10:33 AM Jon", "10:34 AM Olga Berg"],
    ),
    "time and name above": (
        ["00:01:02 Olga\nWe sold it.", "00:01:09 Jon\nOh.", "00:01:15.250 Olga\nYes."],
        ["00:01:02 Olga", "00:01:09 Jon", "00:01:15.250 Olga"],
    ),
    "times alone": (["0:01\nWe sold it.", "0:07\nFor ten.", "0:12\nMarks."], ["0:01",
    "0:07", "0:12"]),
    "relay chat": (
        ["[10:31] <@olga> We sold it.", "[10:32] * jon sits down",
         "[10:33] <+jon_> Oh."],
        ["10:31 olga", "10:32 jon", "10:33 jon_"],
    ),
    "a meeting's chat": (
        ["10:31:05 From Olga Berg to Everyone: We sold it.",
         "10:31:09 From  Jon to Olga Berg: Oh.",
         "10:32:00 From Olga Berg to Everyone: Yes."],
        ["10:31:05 Olga Berg", "10:31:09 Jon", "10:32:00 Olga Berg"],
    ),
    "names alone": (
        ["Olga: We sold it.", "Jon: For how much?", "Olga: Ten marks.\nOnly ten.",
         "Jon: Oh."],
        ["Olga", "Jon", "Olga", "Jon"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n \n"], ids=repr)
@pytest.mark.parametrize("kind", list(TALKS))
def test_a_turn_is_from_its_beginning_to_the_next(kind: str, end: str) -> None:
    turns, titles = TALKS[kind]
    text = end.join(turns) + end
    found = turns_of(text)
    assert [text[turn.start : turn.end] for turn in found] == turns
    assert [turn.title for turn in found] == titles
    for turn in found:
        assert turn.kind == "turn"
        assert turn.header is not None
        assert turn.header[0] == turn.start < turn.header[1] <= turn.end
    units = EQUAL.units_of(text)
    assert [text[unit.start : unit.end] for unit in units] == turns


def test_a_paragraph_of_a_turn_without_times_is_read_with_its_speaker() -> None:
    text = (
        "Olga: One.\n\nTwo goes on.\nHere.\n\nJon: Three.\nOlga: Four.\nJon:"
        " Five.\nOlga: Six.\n\nThe end."
    )
    found = turns_of(text)
    assert [text[turn.start : turn.end] for turn in found[:3]] == [
        "Olga: One.",
        "Two goes on.\nHere.",
        "Jon: Three.",
    ]
    assert [turn.title for turn in found[:3]] == ["Olga", "Olga", "Jon"]
    assert (
        text[found[-1].start : found[-1].end] == "Olga: Six."
    )  # the text after it may be something else


@pytest.mark.parametrize(
    "text",
    [
        "",
        "We met at 10:31 and left. Olga: she paid.\nIt rained.\n"
        "The train left at 11:15.",
        # a form, not a conversation
        "Name: Olga\nBorn: 1911\nPlace: Riga\nTrade: miller\nWife: none",
        # two lines are not yet a conversation
        "[10:31] Olga: We sold it.\n[10:33] Jon: Oh.",
        "Note: It is old.\nNote: It is wet.\n" + "The mill stands by the river.\n" * 9,
        "10:00\n" + "The agenda has many points.\n" * 9,
    ],
)  # fmt: skip
def test_other_texts_have_no_turns(text: str) -> None:
    assert turns_of(text) == ()


@given(
    st.lists(
        st.sampled_from(
            ["Olga: One.", "[1:02] Jon: Two.", "0:07", "Three.", "", " ", "Jon 1:02"]
        ),
        max_size=12,
    )
)
def test_turns_are_in_order_and_apart(lines: list[str]) -> None:
    text, end = "\n".join(lines), 0
    for turn in turns_of(text):
        assert end <= turn.start < turn.end <= len(text)
        assert text[turn.start : turn.end].strip() == text[turn.start : turn.end]
        end = turn.end
