"""The retriever BlockSearch and its search for codes.

A causal language model reads all units and answers with the code of one.
"""

import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_lab.in_context.model import BlockSearchModel, DocumentKeys
from spscanner_lab.in_context.prompt import (
    DIGITS,
    DOCUMENT_TOKENS,
    digits_of,
    draw_codes,
)
from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit

BEAM: Final = 25
BEST: Final = 5
DIGITS_AFTER: Final = 10
"""Digits that continue each prefix of a code: all of them."""
PUBLISHED_DIGITS_AFTER: Final = 5
"""The same in the paper (its k_step), which prunes each beam."""
ROWS_AT_ONCE: Final = 32

_LOGGER = logging.getLogger(__name__)


class BlockSearch(Baseline):
    """BlockSearch: in-context retrieval with attention in blocks.

    Each unit is a document with a code.

    All units of the texts that a query is asked of together, at most 10,000, are one
    corpus, which is read once; the last ``keep_texts`` corpora are kept. The five units
    with the most probable codes get the log-odds of their probability; all others
    follow in the order of their routing score R. Units of more than 300 tokens are cut,
    and a log message says how many. ``model`` is the folder of a Qwen3 model, or a
    folder that `BlockSearchModel.save` wrote. ``digits_after`` is as in `search`.
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
        digits_after: int = DIGITS_AFTER,
    ) -> None:
        super().__init__(unit)
        check_whole(digits_after=digits_after)
        self.digits_after = digits_after
        if isinstance(model, BlockSearchModel):
            self.model = model
            self.name = "blocksearch"
        else:
            self.name = f"blocksearch:{model}"
            place = str(choose(device, "float32").device)
            self.model = BlockSearchModel.from_pretrained(
                model, dtype=dtype, device=place
            )
        self._corpora: TextCache[DocumentKeys] = TextCache(keep_texts)

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> list[Scores]:
        """The numbers of `logits_of`, (units,) for each text.

        All texts of a query are one corpus.
        """
        numbers_by_query: dict[str, list[int]] = {}
        for number, (query, _, units) in enumerate(requests):
            if units:
                numbers_by_query.setdefault(query, []).append(number)
        scored = [np.empty(0, np.float32)] * len(requests)
        for query, numbers in numbers_by_query.items():
            query_requests = [requests[number] for number in numbers]
            corpus = self._corpus(query_requests, cancelled)
            answer = search(self.model, corpus, query, digits_after=self.digits_after)
            scores = logits_of(answer)
            lengths = [len(units) for _, _, units in query_requests]
            stops = np.cumsum(lengths)[:-1]
            for number, part in zip(numbers, np.split(scores, stops), strict=True):
                scored[number] = part
        return scored

    def _corpus(
        self, requests: Sequence[Request], cancelled: Cancelled
    ) -> DocumentKeys:
        def read_units() -> DocumentKeys:
            texts: list[str] = []
            for _, text, text_units in requests:
                for unit in text_units:
                    texts.append(unit.text_with_headings(text))
            keys = read_corpus(self.model, texts, between=lambda: stop_if(cancelled))
            if keys.cut:
                _LOGGER.warning(
                    "%s: %d of %d units are longer than %d tokens and were cut;"
                    " take smaller units",
                    self.name,
                    keys.cut,
                    keys.documents,
                    DOCUMENT_TOKENS,
                )
            return keys

        units: list[Unit] = []
        for _, _, text_units in requests:
            units.extend(text_units)
        all_texts = "\x1e".join(text for _, text, _ in requests)
        return self._corpora.get(all_texts, units, read_units)


class FoundDocuments(NamedTuple):
    """The documents found for a query."""

    # (at most BEST,) numbers of documents, the most probable code first
    best: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]  # (at most BEST,) of their codes
    routing: NDArray[np.float64]  # (documents,): R, which orders all others

    def order(self) -> NDArray[np.int64]:
        """Return the numbers of all documents, best first: (documents,)."""
        others = np.argsort(-self.routing, kind="stable")
        return np.concatenate([self.best, others[~np.isin(others, self.best)]])


@torch.inference_mode()
def read_corpus(
    model: BlockSearchModel,
    texts: Sequence[str],
    *,
    seed: int = 0,
    between: Callable[[], None] = lambda: None,
) -> DocumentKeys:
    """Read documents once, for any number of queries.

    ``cut`` of the result counts the documents of more than 300 tokens. ``between`` is
    called before each batch, and may raise. ``ValueError`` without documents, or for
    more documents than there are codes.
    """
    if not texts:
        raise ValueError("got an empty corpus; expected at least one document")
    codes = draw_codes(len(texts), random.Random(seed), model.settings.codes)
    parts: list[DocumentKeys] = []
    for start in range(0, len(texts), ROWS_AT_ONCE):
        between()
        rows = slice(start, start + ROWS_AT_ONCE)
        parts.append(model.read_documents(texts[rows], codes[rows]))
    return DocumentKeys(
        keys=_joined_layers([part.keys for part in parts]),
        values=_joined_layers([part.values for part in parts]),
        lengths=torch.cat([part.lengths for part in parts]),
        codes=torch.cat([part.codes for part in parts]),
        cut=sum(part.cut for part in parts),
    )


def _joined_layers(parts: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The layers of all parts, each with the tokens of all: (heads, tokens, width)."""
    layers = []
    for layer_parts in zip(*parts, strict=True):
        layers.append(torch.cat(layer_parts, 1))
    return tuple(layers)


@torch.inference_mode()
def search(
    model: BlockSearchModel,
    documents: DocumentKeys,
    query: str,
    *,
    beam: int = BEAM,
    best: int = BEST,
    digits_after: int = DIGITS_AFTER,
) -> FoundDocuments:
    """Decode the ``best`` most probable codes of documents by beam search.

    All others follow by R.

    The log-probability of a code is the sum over its digits of the log-softmax over the
    ten digits. Only prefixes of a document's code are continued, each with the
    likeliest ``digits_after`` digits that a code has there.
    """
    number_of: dict[tuple[int, ...], int] = {}
    for number, value in enumerate(documents.codes.tolist()):
        number_of[digits_of(value)] = number
    query_reading = model.read_queries(model.query_ids(query), documents)
    routing = query_reading.routing[0].double().cpu().numpy()
    keys = query_reading.keys
    # negative log-probabilities and their prefixes
    prefixes: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    logits = query_reading.logits[:, -1]
    for place in range(DIGITS):
        steps = logits.log_softmax(-1).double().cpu().numpy()  # (prefixes, 10)
        allowed = {code[: place + 1] for code in number_of}
        longer: list[tuple[float, tuple[int, ...], int]] = []
        for row, (cost, prefix) in enumerate(prefixes):
            of_prefix = []
            for digit in range(10):
                code = (*prefix, digit)
                if code in allowed:
                    of_prefix.append((cost - steps[row, digit], code, row))
            longer += sorted(of_prefix)[:digits_after]
        continued = sorted(longer)[:beam]
        prefixes = [(cost, prefix) for cost, prefix, _ in continued]
        if place + 1 < DIGITS:
            rows = torch.tensor([row for _, _, row in continued], device=model.device)
            tokens = torch.tensor(
                [[model.layout.digits[prefix[-1]]] for _, prefix in prefixes],
                device=model.device,
            )
            before = [(key[rows], values[rows]) for key, values in keys]
            further = model.read_queries(
                tokens, documents, before, query_reading.selected
            )
            logits = further.logits[:, -1]
            keys = further.keys
    numbers = np.array([number_of[prefix] for _, prefix in prefixes[:best]], np.int64)
    log_probabilities = np.array([-cost for cost, _ in prefixes[:best]])
    return FoundDocuments(numbers, log_probabilities, routing)


def logits_of(answer: FoundDocuments) -> NDArray[np.float32]:
    """Return one number for each document: (documents,).

    They are in the order of `FoundDocuments.order`. The best have the log-odds of their
    codes' probabilities; the others are less than 1 below the lowest of these.
    """
    order = answer.order()
    best = log_odds(np.exp(answer.log_probabilities)).astype(np.float64)
    steps = np.arange(1, len(order) - len(best) + 1) / max(len(order), 1)
    logits = np.empty(len(order))
    logits[order] = np.concatenate([np.minimum.accumulate(best), best.min() - steps])
    return logits.astype(np.float32)
