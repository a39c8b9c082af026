import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.baselines import BM25, Cascade, Hybrid
from spscanner_rag.baselines.base import TextCache
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer, segment
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.conftest import SMALL_TEXT

UNITS = [Unit(0, 1, "a")]


def test_the_least_recently_used_is_forgotten() -> None:
    made: list[str] = []
    kept: TextCache[str] = TextCache(2)

    def get(text: str) -> str:
        return kept.get(text, UNITS, lambda: made.append(text) or text.upper())  # type: ignore[func-returns-value]

    assert [get(text) for text in ("a", "b", "a", "c", "a", "b")] == ["A", "B", "A", "C", "A", "B"]
    assert made == ["a", "b", "c", "b"]


def test_equal_texts_are_one_and_other_units_another_and_what_fails_is_not_kept() -> None:
    kept: TextCache[int] = TextCache(4)
    with pytest.raises(ZeroDivisionError):
        kept.get("abab", UNITS, lambda: 1 // 0)
    assert kept.get("ab" * 2, UNITS, lambda: 1) == 1
    assert kept.get("abab", list(UNITS), lambda: 2) == 1
    assert kept.get("abab", [Unit(0, 2, "ab")], lambda: 3) == 3


def test_pickled_without_what_it_keeps() -> None:
    kept: TextCache[int] = TextCache(3)
    kept.get("a", UNITS, lambda: 1)
    again = pickle.loads(pickle.dumps(kept))
    assert again.keep_texts == 3
    assert again.get("a", UNITS, lambda: 2) == 2
    with pytest.raises(ValueError, match="at least 1"):
        TextCache(0)


@pytest.mark.parametrize(
    ("combined", "own"),
    [
        (lambda scanner: Hybrid([BM25(), scanner]), True),
        (lambda scanner: Hybrid([BM25(), scanner], unit="sentence"), True),
        (lambda scanner: Cascade(BM25(), scanner), True),
        (lambda scanner: Cascade(scanner, BM25()), True),
        (lambda scanner: Cascade(BM25(), Hybrid([BM25(), scanner]), unit="sentence"), True),
        (lambda scanner: Hybrid([BM25("chunk"), scanner]), False),
        (lambda scanner: Hybrid([scanner, BM25()], unit="passage"), False),
        (lambda scanner: Hybrid([BM25(), scanner], unit=SentenceSegmenter()), False),
        (lambda scanner: Cascade(BM25(), scanner, unit="chunk:50"), False),
    ],
)
def test_a_scanner_cuts_its_own_sentences_wherever_it_stands(
    combined: Callable[[Scanner], Scorer], own: bool, windowed_checkpoint: Path
) -> None:
    scanner = Scanner.from_pretrained(windowed_checkpoint, device="cpu", dtype="float32")
    units = segment(combined(scanner), SMALL_TEXT)
    assert (units == scanner.segment(SMALL_TEXT)) is own
    assert scanner.segment(SMALL_TEXT) != SentenceSegmenter().segment(SMALL_TEXT)
