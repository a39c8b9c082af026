"""Trimwise as a scorer: a unit ranks by the smallest budget that keeps it."""

import numpy as np
import pytest

trimwise = pytest.importorskip("trimwise")

from spscanner_rag.baselines import Trimwise  # noqa: E402
from spscanner_rag.baselines.trimwise import LIMITS  # noqa: E402

QUERY = "Who signed the treaty?"
TEXT = (
    "The keeper signed the treaty. "
    + "Ships came from the north every week, and left again. " * 400
    + "Nobody signed the second treaty. "
)


def test_a_unit_ranks_by_the_smallest_budget_that_keeps_it() -> None:
    scorer = Trimwise()
    units = scorer.units_of(TEXT)
    raw = scorer.raw_scores(QUERY, TEXT, units)
    assert {int(score) for score in raw} <= set(range(len(LIMITS) + 1))
    assert raw[0] == len(LIMITS)
    assert raw.min() == 0, "the text is longer than the largest budget"
    for number, limit in enumerate(LIMITS[:2]):
        trimmed = trimwise.Trimmer().trim(
            TEXT, limit, unit="characters", query=QUERY, strategy="lexical"
        )
        kept = set()
        for span in trimmed.spans:
            kept |= set(range(span.start, span.end))
        for unit, score in zip(units, raw, strict=True):
            inside = len(kept & set(range(unit.start, unit.end)))
            if 2 * inside >= unit.end - unit.start:
                assert score >= len(LIMITS) - number


def test_scores_follow_the_budgets() -> None:
    scorer = Trimwise()
    units = scorer.units_of(TEXT)
    raw = scorer.raw_scores(QUERY, TEXT, units)
    logits = scorer.score_units(QUERY, TEXT, units)
    assert (np.argsort(-raw, kind="stable") == np.argsort(-logits, kind="stable")).all()
    assert scorer.score_units(QUERY, "", []).tolist() == []
