"""In-context retrieval: a causal language model reads all units and answers with the code of one."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, log_odds
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.lab.in_context.document_keys import DocumentKeys
from spscanner_rag.lab.in_context.layout import DOCUMENT_TOKENS
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import Found, read_corpus, search
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, Request, check_query, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit

_LOGGER = logging.getLogger(__name__)


class BlockSearch(Baseline):
    """BlockSearch: in-context retrieval with attention in blocks; each unit is a document with a code.

    All units of the texts that a query is asked of at once are one corpus, which is read once and kept for further
    queries. The five units with the most probable codes have the log-odds of their probability; all others follow
    below them in the order of their routing score R. Units of more than 300 tokens are cut, and a log message
    says how many.

    Parameters
    ----------
    model : str or Path
        A folder of a Qwen3 model, or one that `BlockSearchModel.save` wrote.
    unit : str or Segmenter, default "passage"
        See `Baseline`; at most 10,000 in one corpus.
    device : str, default "auto"
        See `Scanner.from_pretrained`.
    dtype : str, default "auto"
        The dtype of the weights, "auto" as they are stored.
    keep_texts : int, default 4
        Number of corpora whose keys and values are kept.

    Raises
    ------
    ImportError, ValueError, FileNotFoundError
        See `BlockSearchModel.from_pretrained`.
    """

    keeps_texts = True

    def __init__(
        self,
        model: str | Path | BlockSearchModel,
        unit: UnitKind | Segmenter = "passage",
        *,
        device: str = "auto",
        dtype: str = "auto",
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit)
        if isinstance(model, BlockSearchModel):
            self.model, self.name = model, "blocksearch"
        else:
            self.name = f"blocksearch:{model}"
            place = str(choose(device, "float32").device)
            self.model = BlockSearchModel.from_pretrained(model, dtype=dtype, device=place)
        self._corpora: TextCache[DocumentKeys] = TextCache(keep_texts)

    @property
    def index_bytes(self) -> int:
        """Bytes of the keys and values that are kept for further questions."""
        return sum(kept.n_bytes for kept in self._corpora.values())

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """As `logits_of` says: (units,)."""
        return self._scores(query, [(query, text, units)], never)

    def score_units_many(
        self, requests: Sequence[Request], *, cancelled: Cancelled = never
    ) -> list[NDArray[np.float32]]:
        """Logits of the units of several texts: (units,) each. The texts that share a query are one corpus.

        Raises
        ------
        ValueError
            If a query is empty, or the texts of one query have more than 10,000 units.
        ScanCancelled
            If ``cancelled`` returned True.
        """
        asked: dict[str, list[int]] = {}
        for number, (query, _, units) in enumerate(requests):
            asked.setdefault(check_query(query), []).extend([number] if units else [])
        scored = [np.empty(0, np.float32)] * len(requests)
        for query, numbers in asked.items():
            own = [requests[number] for number in numbers]
            scores = self._scores(query, own, cancelled) if own else np.empty(0, np.float32)
            stops = np.cumsum([len(units) for _, _, units in own])[:-1]
            for number, part in zip(numbers, np.split(scores, stops), strict=True):
                scored[number] = part
        return scored

    def _scores(self, query: str, requests: Sequence[Request], cancelled: Cancelled) -> NDArray[np.float32]:
        """Scores of the units of all texts, which are one corpus: (units,)."""
        texts = [unit.own_text(text) for _, text, units in requests for unit in units]
        units = [unit for _, _, own in requests for unit in own]
        key = "\x1e".join(text for _, text, _ in requests)

        def read() -> DocumentKeys:
            keys = read_corpus(self.model, texts, between=lambda: stop_if(cancelled))
            if keys.cut:
                _LOGGER.warning(
                    "%s: %d of %d units are longer than %d tokens and were cut; take smaller units",
                    self.name,
                    keys.cut,
                    keys.documents,
                    DOCUMENT_TOKENS,
                )
            return keys

        return logits_of(search(self.model, self._corpora.get(key, units, read), query))


def logits_of(found: Found) -> NDArray[np.float32]:
    """One number for each document, in the order of `Found.order`: (documents,).

    The best have the log-odds of their codes' probabilities; the others lie in the unit below the lowest of these.
    """
    order = found.order()
    best = log_odds(np.exp(found.log_probabilities)).astype(np.float64)
    steps = np.arange(1, len(order) - len(best) + 1) / max(len(order), 1)
    logits = np.empty(len(order))
    logits[order] = np.concatenate([np.minimum.accumulate(best), best.min() - steps])
    return logits.astype(np.float32)
