"""Lines of a page become paragraphs, rows and footnotes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.pdf_lines import Strip
from spscanner_rag.files.readers.pdf_paragraphs import NOTE, ROW, paragraphs_of


def strip(left: float, bottom: float, text: str, size: float = 10) -> Strip:
    """Words at a place; letters are half as wide as high."""
    words = tuple(text.split())
    boxes = ((0, 0, 1, 1),) * len(words)
    right = left + len(text) * size / 2
    return Strip(words, boxes, left, bottom, right, bottom + size, size, False)


def test_a_drop_cap_begins_its_word() -> None:
    strips = [
        strip(60, 672, "B", 36),
        strip(84, 700, "utterworth came with two ships and left"),
        strip(84, 687, "again. Nobody knew what he had brought."),
    ]
    (paragraph,) = paragraphs_of(strips)
    assert paragraph.text.startswith("Butterworth came")


def test_points_of_a_slide_are_apart() -> None:
    points = [
        "Revenue grew by a third in this long year",
        "Two mills were sold",
        "Riga",
    ]
    strips = [strip(72, 420 - 40 * n, point, 28) for n, point in enumerate(points)]
    assert [paragraph.text for paragraph in paragraphs_of(strips)] == points


def test_lines_that_end_early_end_a_paragraph() -> None:
    lines = [
        "The council met in the old hall on Monday",
        "and went home",
        "Anne Reed signed the treaty in the hall of",
        "the town.",
    ]
    strips = [strip(72, 700 - 13 * n, line) for n, line in enumerate(lines)]
    found = [paragraph.text for paragraph in paragraphs_of(strips)]
    assert found == ["\n".join(lines[:2]), "\n".join(lines[2:])]


def test_a_caption_cuts_no_sentence() -> None:
    strips = [
        strip(72, 700, "The council met in the old hall and", 10),
        strip(72, 600, "Figure 1: The old hall.", 8),
        strip(72, 570, "went home by boat.", 10),
    ]
    found = [paragraph.text for paragraph in paragraphs_of(strips)]
    assert found == [
        "Figure 1: The old hall.",
        "The council met in the old hall and\nwent home by boat.",
    ]


def test_small_lines_at_the_foot_are_notes() -> None:
    text = [strip(72, 700 - 13 * n, "It rained for a week.") for n in range(5)]
    note = strip(72, 60, "1 The ledger has another date.", 7)
    kinds = [paragraph.kind for paragraph in paragraphs_of([*text, note])]
    assert kinds[-1] == NOTE
    assert NOTE not in kinds[:-1]


@pytest.mark.parametrize(("gap", "is_row"), [(5, False), (40, True)])
def test_a_line_with_a_wide_gap_is_a_row(gap: float, is_row: bool) -> None:
    first = strip(72, 700, "Total due")
    second = strip(first.right + gap, 700, "1,250 marks")
    (paragraph,) = paragraphs_of([first, second])
    assert (paragraph.kind == ROW) is is_row
    assert paragraph.text.split() == ["Total", "due", "1,250", "marks"]


STRIPS = st.lists(
    st.builds(
        strip,
        st.floats(0, 500),
        st.floats(0, 700),
        st.sampled_from(["A", "two words", "A line of six words here.", "1 note", "•"]),
        st.sampled_from([6.0, 10.0, 30.0]),
    ),
    max_size=30,
)


@given(STRIPS)
def test_no_letter_is_lost(strips: list[Strip]) -> None:
    found = sorted("".join(paragraph.text for paragraph in paragraphs_of(strips)))
    drawn = sorted("".join("".join(strip.words) for strip in strips))
    assert [letter for letter in found if not letter.isspace()] == drawn
