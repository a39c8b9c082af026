"""Texts are prepared once for a scorer, within the bound of the process."""

import gc
from collections.abc import Sequence

import numpy as np
import pytest
from typing_extensions import override

from spscanner_rag import Scanner
from spscanner_rag.retrieval import prepared_texts
from spscanner_rag.retrieval.prepared_texts import prepared_text
from spscanner_rag.scorers import CutText, ScanCancelled, Scorer
from spscanner_rag.system.kept_values import KeptBytes, KeptValues
from spscanner_rag.text.units import Unit
from tests.retrieval.searching import best_first, joined, search


class Lengths(Scorer):
    """Prefers long sentences, and remembers which texts it has prepared."""

    def __init__(self) -> None:
        self.prepared: list[str] = []

    @override
    def prepare(self, text: str, **options: object) -> CutText:
        self.prepared.append(text)
        units = options["units"]
        assert isinstance(units, Sequence)
        return CutText(text, units)

    @override
    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> np.ndarray:
        return np.array([unit.end - unit.start for unit in units], np.float32)


TEXTS = ["It rained. The keeper slept.", "Ann signed the treaty."]


def test_the_second_question_prepares_nothing() -> None:
    scorer = Lengths()
    for query in ("Who slept?", "Who signed?"):
        hits = search(scorer, query, joined(TEXTS), best_first(top_k=1))
        assert [hit.text for hit in hits] == ["Ann signed the treaty."]
    assert scorer.prepared == TEXTS


def test_each_scorer_has_its_texts() -> None:
    first, second = Lengths(), Lengths()
    (text, _) = joined(TEXTS)
    assert prepared_text(first, text) is prepared_text(first, text)
    assert prepared_text(second, text) is not prepared_text(first, text)


def test_a_scanner_that_reads_another_share_prepares_nothing_again(
    tiny_scanner: Scanner,
) -> None:
    (text, _) = joined(TEXTS)
    other = tiny_scanner.with_read("all")
    assert other is not tiny_scanner
    assert prepared_text(other, text) is prepared_text(tiny_scanner, text)


def test_without_room_texts_are_prepared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_texts, "KeptValues", lambda: KeptValues(KeptBytes(0)))
    scorer = Lengths()
    for _ in range(2):
        hits = search(scorer, "Who?", joined(TEXTS), best_first(top_k=1))
        assert [hit.text for hit in hits] == ["Ann signed the treaty."]
    assert scorer.prepared == TEXTS * 2


def test_a_cancelled_text_is_not_kept() -> None:
    scorer = Lengths()
    (text, _) = joined(TEXTS)
    with pytest.raises(ScanCancelled):
        prepared_text(scorer, text, lambda: True)
    assert scorer.prepared == []
    prepared_text(scorer, text)
    assert prepared_text(scorer, text, lambda: True).text == TEXTS[0]


def test_texts_go_with_their_scorer() -> None:
    scorer = Lengths()
    prepared_text(scorer, joined(TEXTS)[0])
    number = id(scorer)
    assert number in prepared_texts._values_of_scorers
    del scorer
    gc.collect()
    assert number not in prepared_texts._values_of_scorers
