"""Trimwise, which trims a text to a budget, as a scorer of units."""

from collections.abc import Iterator, Sequence

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.token_counts import resolve_counter
from spscanner_rag.text.units import Segmenter, Unit

LIMITS = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""Budgets of characters that a text is trimmed to, the smallest first."""


class Trimwise(Baseline):
    r"""The spans that `trimwise <https://pypi.org/project/trimwise/>`_ keeps of a text.

    It chooses spans for a budget by BM25 on tokens and by diversity, without a model,
    and scores nothing. So a text is trimmed to each of `LIMITS`, and a unit ranks by
    the smallest budget in which at least half of it is kept; units within one budget
    are equal. The raw score is the number of budgets up to the largest, 0 for a unit
    that none keeps; users see its share of eight.

    Parameters
    ----------
    unit
        See `Baseline`.

    Raises
    ------
    ImportError
        If trimwise is not installed.
    OSError
        If tiktoken's encoding o200k_base, which trimwise counts with, is neither on
        this machine nor can be downloaded.

    Examples
    --------
    >>> scorer = Trimwise()
    >>> text = "Ships leave at noon.\n\n" * 20 + "The keeper signed it."
    >>> units = scorer.units_of(text)
    >>> scores = scorer.raw_scores("Which keeper signed it?", text, units)
    >>> bool(scores[20] == scores.max())
    True
    """

    name = "trimwise"

    def __init__(self, unit: UnitKind | Segmenter = "sentence") -> None:
        super().__init__(unit)
        import_extra("trimwise", "Trimwise", "baselines")
        # finds the file that LlamaIndex brings, so that trimwise needs no network
        resolve_counter("o200k_base")

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """The number of budgets within which each unit is kept: (units,) each."""
        for query, text, units in requests:
            yield self._budgets_kept(query, text, units, cancelled)

    def logits(self, raw: Scores) -> Scores:
        """The log odds of a share of all budgets, and one more: (units,)."""
        return log_odds(raw / (len(LIMITS) + 1))

    def _budgets_kept(
        self, query: str, text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> Scores:
        from trimwise import Trimmer

        trimmer = Trimmer()
        text = replace_surrogates(text)
        starts, ends = Spans.of(units)
        raw = np.zeros(len(units), np.float32)
        if not units:
            return raw
        for number, limit in reversed(list(enumerate(LIMITS))):
            stop_if(cancelled)
            trimmed = trimmer.trim(
                text,
                limit,
                unit="characters",
                query=replace_surrogates(query),
                strategy="lexical",
            )
            kept = np.zeros(len(text) + 1, np.int64)
            for span in trimmed.spans:
                kept[span.start + 1 : span.end + 1] = 1
            before = kept.cumsum()  # kept characters before each place
            is_kept = 2 * (before[ends] - before[starts]) >= ends - starts
            raw[is_kept] = len(LIMITS) - number
        return raw
