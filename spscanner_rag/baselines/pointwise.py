"""The base class of baselines that read the query together with one unit."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.surrogates import replace_surrogates

PAIRS_AT_ONCE = 4096  # pairs that are tokenized and sorted by length together
Pair = tuple[str, str]
"""A query, and the text of a unit."""


class Pointwise(Baseline):
    """A baseline whose logit depends on the query and the text of the unit alone."""

    @abstractmethod
    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        """Logits of pairs of query and unit text: (pairs,).

        Call `stop_if` with ``cancelled`` regularly.
        """

    def score_texts(self, query: str, texts: Sequence[str]) -> Scores:
        """Logits of arbitrary texts: (texts,).

        For NaN or infinity, a ``ValueError`` that quotes the text.
        """
        return self._checked([(query, text) for text in texts], never)

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """The model's logits of `Unit.text_with_headings`, (units,) each.

        A batch may have units of several texts.
        """
        pairs = _pairs_of(requests)
        scores = np.empty(0, np.float32)
        for _, _, units in requests:
            stop_if(cancelled)
            while len(scores) < len(units):
                batch = list(islice(pairs, PAIRS_AT_ONCE))
                scores = np.concatenate([scores, self._checked(batch, cancelled)])
            yield scores[: len(units)]
            scores = scores[len(units) :]

    def _checked(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Scores:
        if not pairs:
            return np.empty(0, np.float32)
        readable_pairs = []
        for query, text in pairs:
            readable_pairs.append(
                (replace_surrogates(query.strip()), replace_surrogates(text))
            )
        scores = self.score_pairs(readable_pairs, cancelled)
        if not np.isfinite(scores).all():
            first = int(np.argmin(np.isfinite(scores)))
            raise ValueError(
                f"{self.name} gives {scores[first]} for {pairs[first][1][:60]!r};"
                " expected a finite number: try dtype='float32', or another model"
            )
        return scores


def _pairs_of(requests: Sequence[Request]) -> Iterator[Pair]:
    for query, text, units in requests:
        for unit in units:
            yield query, unit.text_with_headings(text)
