"""Units of documents with headings, fences and tables."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.plain_text import blocks_of
from spscanner_rag.text.blocks import (
    HEADER_SHARE,
    LEAST_HEADER,
    LONGEST_READ_WITH,
    LONGEST_UNIT,
    Block,
    segment_blocks,
    turns_of,
)
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.fakes import EQUAL


def units_of(text: str) -> list[Unit]:
    return segment_blocks(text, blocks_of(text), SentenceSegmenter().segment)


def shown(text: str) -> list[tuple[str, str]]:
    """The text that is scored, and the text that the model reads for it."""
    return [(text[unit.start : unit.end], unit.model_text) for unit in units_of(text)]


def test_a_heading_is_read_with_the_sentence_that_follows() -> None:
    assert shown("# A\n\n## B\n\nOne here. Two here.\n\n# C\n") == [
        ("One here.", "# A\n\n## B\n\nOne here. "),
        ("Two here.", "Two here.\n\n"),
        ("# C", "# C\n"),
    ]


def test_a_row_is_read_with_its_header() -> None:
    text = "Before.\n\n| Item | Price |\n|---|---|\n| Nut | 3 |\n| Bolt | 4 |\n\nAfter."
    assert shown(text) == [
        ("Before.", "Before.\n\n"),
        ("| Nut | 3 |", "| Item | Price |\n|---|---|\n| Nut | 3 |"),
        ("| Bolt | 4 |", "\n| Item | Price |\n| Bolt | 4 |"),
        ("After.", "\n\nAfter."),
    ]


def test_a_fence_is_a_unit_and_a_long_one_is_cut_at_its_lines() -> None:
    short = "```\nx = 1. y\n\nz\n```"
    assert shown(f"# T\n\n{short}\n\nEnd.")[0] == (short, f"# T\n\n{short}")
    lines = "\n".join(f"line {number} of the program" for number in range(200))
    pieces = [unit for unit, _ in shown(f"```\n{lines}\n```")]
    assert max(map(len, pieces)) <= LONGEST_UNIT
    assert all(piece.startswith(("```", "line ")) for piece in pieces)
    assert "\n".join(pieces) == f"```\n{lines}\n```"


def test_a_turn_is_a_unit_wherever_it_stands_and_a_long_one_is_cut_at_its_sentences() -> (
    None
):
    long, short = f"Ben: {' '.join(['It is late.'] * 30)}", "Ann: It rains. It snows."
    text = f"{long}\n{short}"
    spans = ((0, len(long)), (len(long) + 1, len(text)))
    turns = [
        Block(start, end, "turn", header=(start, start + 4)) for start, end in spans
    ]
    units = segment_blocks(text, turns, SentenceSegmenter().segment)
    scored = [text[unit.start : unit.end] for unit in units]
    assert scored == ["Ben: It is late.", *["It is late."] * 29, short]


def test_items_of_a_list_are_units() -> None:
    assert [unit for unit, _ in shown("- one\n- two\n  goes on\n- three. Four here.")] == [
        "- one", "- two\n  goes on", "- three.", "Four here."
    ]  # fmt: skip


def test_a_page_of_headings_is_not_one_unit() -> None:
    text = (
        "\n\n".join(f"# Heading number {number}" for number in range(500))
        + "\n\nThe end."
    )
    found = units_of(text)
    assert max(len(unit.model_text) for unit in found) < 2 * LONGEST_READ_WITH
    assert "".join(unit.model_text for unit in found) == text
    assert text[found[-1].start : found[-1].end] == "The end."


def test_a_long_header_is_read_in_part() -> None:
    text = "x" * 5_000 + "\nNut 3\nBolt 4"
    blocks = [
        Block(0, 5_000, "header"),
        Block(5_001, 5_006, "row", (0, 5_000)),
        Block(5_007, 5_013, "row", (0, 5_000)),
    ]
    found = segment_blocks(text, blocks, SentenceSegmenter().segment)
    assert (
        found[-1].model_text
        == "\n" + "x" * (LEAST_HEADER + HEADER_SHARE * len("Bolt 4")) + "\nBolt 4"
    )


def test_no_word_joins_two_stretches() -> None:
    class Trimming:
        def segment(self, text: str) -> list[Unit]:
            start = len(text) - len(text.lstrip())
            return [Unit(start, len(text.rstrip()), text.strip())]

    text = "- one\n- two\n\nThree."
    found = segment_blocks(text, blocks_of(text), Trimming().segment)
    assert "".join(unit.model_text for unit in found).split() == text.split()


@given(st.text(alphabet="#|-`>* \n\tab.!~", max_size=150))
def test_units_are_trimmed_in_order_and_read_the_whole_text(text: str) -> None:
    blocks: Sequence[Block] = blocks_of(text)
    found = segment_blocks(text, blocks, SentenceSegmenter().segment)
    end = 0
    for unit in found:
        assert end <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end].strip() == text[unit.start : unit.end]
        assert unit.model_text.rstrip().endswith(text[unit.start : unit.end])
        end = unit.end
    scored = {i for unit in found for i in range(unit.start, unit.end)}
    unscored = {
        i for i, character in enumerate(text) if not character.isspace()
    } - scored
    assert unscored <= {
        i
        for b in blocks
        if b.kind in ("heading", "header")
        for i in range(b.start, b.end)
    }
    if not any(block.kind == "row" for block in blocks):
        assert "".join(unit.model_text for unit in found) == (text if found else "")


TALKS = {
    "time and name": (
        ["[10:31] Olga: We sold it.", "[10:33] Jon P. Berg: For how much?", "[10:40] Olga: Ten marks.\nOnly ten."],
        ["10:31 Olga", "10:33 Jon P. Berg", "10:40 Olga"],
    ),
    "a phone's chat": (
        ["3/5/2024, 10:31 PM - Olga: Sold.", "3/5/2024, 10:33 PM - ~ Jo: O.", "4/5/2024, 7:00 AM - Olga: I."],
        ["3/5/2024, 10:31 PM Olga", "3/5/2024, 10:33 PM Jo", "4/5/2024, 7:00 AM Olga"],
    ),
    "name and time in brackets": (
        ["Olga (00:12):\nWe sold it.", "Jon Berg (00:19):\nFor how much?\nAnd when?", "Olga (01:07):\nTen marks."],
        ["00:12 Olga", "00:19 Jon Berg", "01:07 Olga"],
    ),
    "name and time above": (
        ["Olga Berg  10:31 AM\nWe sold it.", "Jon  10:33 AM\nOh.", "Olga Berg  10:34 AM\nYes."],
        ["10:31 AM Olga Berg", "10:33 AM Jon", "10:34 AM Olga Berg"],
    ),
    "time and name above": (
        ["00:01:02 Olga\nWe sold it.", "00:01:09 Jon\nOh.", "00:01:15.250 Olga\nYes."],
        ["00:01:02 Olga", "00:01:09 Jon", "00:01:15.250 Olga"],
    ),
    "times alone": (["0:01\nWe sold it.", "0:07\nFor ten.", "0:12\nMarks."], ["0:01", "0:07", "0:12"]),
    "relay chat": (
        ["[10:31] <@olga> We sold it.", "[10:32] * jon sits down", "[10:33] <+jon_> Oh."],
        ["10:31 olga", "10:32 jon", "10:33 jon_"],
    ),
    "a meeting's chat": (
        ["10:31:05 From Olga Berg to Everyone: We sold it.", "10:31:09 From  Jon to Olga Berg: Oh.",
         "10:32:00 From Olga Berg to Everyone: Yes."],
        ["10:31:05 Olga Berg", "10:31:09 Jon", "10:32:00 Olga Berg"],
    ),
    "names alone": (
        ["Olga: We sold it.", "Jon: For how much?", "Olga: Ten marks.\nOnly ten.", "Jon: Oh."],
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
        "We met at 10:31 and left. Olga: she paid.\nIt rained.\nThe train left at 11:15.",
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
