"""The base class of rerankers, which score each pair of query and unit independently."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, checked_requests
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.units import Unit, readable

PAIRS_AT_ONCE = 4096
"""Number of pairs that are tokenized and sorted by length together."""

Pair = tuple[str, str]


class Pointwise(Baseline):
    """A baseline whose raw score is a logit, and depends only on the query and the text of the unit."""

    @abstractmethod
    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        """Logits of pairs of query and unit text: (pairs,). Call `stop_if` with ``cancelled`` regularly."""

    def score_texts(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Logits of arbitrary texts: (texts,).

        Raises
        ------
        ValueError
            If the model returns NaN or infinity; the message quotes the text.
        """
        return self._checked([(query, text) for text in texts], never)

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """The model's logits: (units,). The model reads `Unit.own_text`."""
        return self.score_texts(query, [unit.own_text(text) for unit in units])

    def score_units_many(
        self, requests: Iterable[Request], *, cancelled: Cancelled = never
    ) -> list[NDArray[np.float32]]:
        """Logits of the units of each text, in order: (units,) each. Units of similar length share a batch.

        Raises
        ------
        ValueError
            If a query is empty; nothing has been read then.
        ScanCancelled
            If ``cancelled`` returned True.
        """
        return list(self._scored(checked_requests(requests), cancelled))

    def _scored(self, requests: list[Request], cancelled: Cancelled) -> Iterator[NDArray[np.float32]]:
        pairs = ((query, unit.own_text(text)) for query, text, units in requests for unit in units)
        scores = np.empty(0, np.float32)
        for _, _, units in requests:
            stop_if(cancelled)
            while len(scores) < len(units):
                block = list(islice(pairs, PAIRS_AT_ONCE))
                scores = np.concatenate([scores, self._checked(block, cancelled)])
            yield self.logits(scores[: len(units)])
            scores = scores[len(units) :]

    def _checked(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        if not pairs:
            return np.empty(0, np.float32)
        read = [(readable(query.strip()), readable(text)) for query, text in pairs]
        scores = self.score_pairs(read, cancelled)
        if not np.isfinite(scores).all():
            first = int(np.argmin(np.isfinite(scores)))
            raise ValueError(
                f"{self.name} gives {scores[first]} for {pairs[first][1][:60]!r}; expected a finite number:"
                " try dtype='float32', or another model"
            )
        return scores
