"""Units of documents with headings, fences and tables."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.markdown import blocks_of
from spscanner_rag.text.block_segmentation import (
    HEADER_SHARE,
    LEAST_HEADER,
    LONGEST_READ_WITH,
    LONGEST_TITLE,
    LONGEST_UNIT,
    reads_like_a_sentence,
    segment_blocks,
)
from spscanner_rag.text.blocks import Block, BlockKind
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from spscanner_rag.text.visible_text import shown as without_markup


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
        ("| Item | Price |", "| Item | Price |"),
        ("| Nut | 3 |", "\n| Item | Price |\n| Nut | 3 |"),
        ("| Bolt | 4 |", "\n| Item | Price |\n| Bolt | 4 |"),
        ("After.", "\n\nAfter."),
    ]


def test_a_heading_that_reads_like_a_sentence_is_a_unit() -> None:
    assert shown("# Rent\n\n## He pays forty marks.\n\nIt rained.\n") == [
        ("## He pays forty marks.", "# Rent\n\n## He pays forty marks."),
        ("It rained.", "\n\nIt rained.\n"),
    ]


def test_markup_is_not_read_and_spans_index_the_text_with_it() -> None:
    text = "# <b>Rent</b>\n\nHe <i>pays</i> 40&nbsp;marks.<br>It is <b>due</b> in May."
    assert shown(text) == [
        ("He <i>pays</i> 40&nbsp;marks.", "# Rent\n\nHe pays 40\xa0marks. "),
        ("It is <b>due</b> in May.", "It is due in May."),
    ]


def test_a_fence_is_a_unit_and_a_long_one_is_cut_at_its_lines() -> None:
    short = "```\nx = 1. y\n\nz\n```"
    assert shown(f"# T\n\n{short}\n\nEnd.")[0] == (short, f"# T\n\n{short}")
    lines = "\n".join(f"line {number} of the program" for number in range(200))
    pieces = [unit for unit, _ in shown(f"```\n{lines}\n```")]
    assert max(map(len, pieces)) <= LONGEST_UNIT
    assert all(piece.startswith(("```", "line ")) for piece in pieces)
    assert "\n".join(pieces) == f"```\n{lines}\n```"


def test_a_turn_is_a_unit_and_a_long_one_is_cut_at_its_sentences() -> None:
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
    units = shown("- one\n- two\n  goes on\n- three. Four here.")
    expected = ["- one", "- two\n  goes on", "- three.", "Four here."]
    assert [unit for unit, _ in units] == expected


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
    markup = [block for block in blocks if block.kind == "markup"]
    end = 0
    for unit in found:
        assert end <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end].strip() == text[unit.start : unit.end]
        read = without_markup(text, unit.start, unit.end, markup)
        assert unit.model_text.rstrip().endswith(read)
        end = unit.end
    scored = {i for unit in found for i in range(unit.start, unit.end)}
    unscored = {
        i for i, character in enumerate(text) if not character.isspace()
    } - scored
    assert unscored <= {
        i
        for b in blocks
        if b.kind in ("heading", "header", "markup")
        for i in range(b.start, b.end)
    }
    if not any(block.kind == "row" for block in blocks):
        whole = without_markup(text, 0, len(text), markup)
        assert "".join(unit.model_text for unit in found) == (whole if found else "")


@pytest.mark.parametrize("kind", ["item", "row", "fence", "turn"])
def test_a_block_with_nothing_in_it_is_no_unit(kind: BlockKind) -> None:
    text = "   \n\nIt rained. He left."
    blocks = [Block(0, 3, kind), Block(5, len(text), "item")]
    units = segment_blocks(text, blocks, SentenceSegmenter().segment)
    assert [text[unit.start : unit.end] for unit in units] == ["It rained.", "He left."]
    assert units[0].model_text == "   \n\nIt rained. "


def test_a_heading_too_long_to_be_read_with_a_sentence_is_a_unit() -> None:
    heading = "# " + "Rent and other things " * 40
    assert len(heading) > LONGEST_READ_WITH
    text = f"{heading}\n\n   \n\nIt rained."
    place = len(heading) + 7
    blocks = [Block(0, len(heading), "heading"), Block(place, len(text), "item")]
    units = segment_blocks(text, blocks, SentenceSegmenter().segment)
    spans = [(unit.start, unit.end) for unit in units]
    assert (0, len(heading.rstrip())) in spans
    assert spans[-1] == (place, len(text))
    assert len(units[-1].model_text) < 30


def test_headings_at_the_end_are_units_and_blank_lines_are_not() -> None:
    text = "# A\n\n \n# B\n"
    blocks = [Block(0, 3, "heading"), Block(7, 10, "heading")]
    units = segment_blocks(text, blocks, SentenceSegmenter().segment)
    assert [text[unit.start : unit.end] for unit in units] == ["# A", "# B"]
    assert "".join(unit.model_text for unit in units) == text


def test_a_very_long_title_reads_like_a_sentence() -> None:
    assert reads_like_a_sentence("Rent " * LONGEST_TITLE)
