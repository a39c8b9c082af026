"""Words that a selection keeps, counted against the evidence."""

import pytest

from spscanner_lab.evidence.kept_words import KeptWords, kept_words, quality_of
from spscanner_lab.evidence.questions import Question
from spscanner_rag.results import Passage

TEXT = "Ann signed it. It rained."


@pytest.mark.parametrize(
    ("kept", "evidence", "expected"),
    [
        ((0, 14), ((0, 14),), (3, 3, 3)),
        ((0, 14), (), (0, 3, 0)),
        ((15, 25), ((0, 14),), (0, 2, 3)),
        ((0, 14), ((5, 6), (15, 25)), (1, 3, 3)),  # a part of a word counts
    ],
)
def test_words_overlap(
    kept: tuple[int, int],
    evidence: tuple[tuple[int, int], ...],
    expected: tuple[int, int, int],
) -> None:
    passage = Passage(TEXT[slice(*kept)], *kept, 0.5)
    assert kept_words(TEXT, [passage], Question("1", "Who?", evidence)) == expected


def test_the_quality_is_that_of_all_words_together() -> None:
    counts = [KeptWords(3, 3, 3), KeptWords(0, 5, 0), KeptWords(1, 2, 4)]
    quality = quality_of(counts, ["a", "b", "b"])
    assert quality.precision == pytest.approx(4 / 10)
    assert quality.recall == pytest.approx(4 / 7)
    assert quality.f1 == pytest.approx(8 / 17)
    assert quality.f1_low <= quality.f1 <= quality.f1_high


def test_nothing_kept_is_no_error() -> None:
    assert quality_of([KeptWords(0, 0, 0)], ["a"])[:3] == (0, 0, 0)
