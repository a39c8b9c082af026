"""Search: read a corpus once, then decode the codes of the documents that answer a query."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.lab.in_context.document_keys import DocumentKeys, QueryKeys
from spscanner_rag.lab.in_context.layout import DIGITS, digits_of, draw_codes
from spscanner_rag.lab.in_context.model import BlockSearchModel

BEAM: Final = 25
BEST: Final = 5
ROWS_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class Found:
    """The documents found for a query."""

    best: NDArray[np.int64]  # (at most BEST,) numbers of documents, the most probable code first
    log_probabilities: NDArray[np.float64]  # (at most BEST,) of their codes
    routing: NDArray[np.float64]  # (documents,): R, by which all others follow

    def order(self) -> NDArray[np.int64]:
        """All documents, the best first: (documents,)."""
        others = np.argsort(-self.routing, kind="stable")
        return np.concatenate([self.best, others[~np.isin(others, self.best)]])


@torch.inference_mode()
def read_corpus(
    model: BlockSearchModel,
    texts: Sequence[str],
    *,
    seed: int = 0,
    after: DocumentKeys | None = None,
    between: Callable[[], None] = lambda: None,
) -> DocumentKeys:
    """Read documents once, for any number of queries.

    Parameters
    ----------
    model : BlockSearchModel
    texts : sequence of str
        The documents, at most 10,000. What exceeds 300 tokens is cut; ``cut`` of the result counts such documents.
    seed : int, default 0
        Determines their codes.
    after : DocumentKeys, optional
        A cache to extend; it keeps its codes.
    between : callable, optional
        Called between batches, and may raise.

    Raises
    ------
    ValueError
        Without documents, or for more than there are codes; nothing is read then.
    """
    if not texts:
        raise ValueError("got an empty corpus; expected at least one document")
    codes = draw_codes(len(texts), random.Random(seed), [] if after is None else after.codes.tolist())
    parts = [] if after is None else [after]
    for start in range(0, len(texts), ROWS_AT_ONCE):
        between()
        rows = slice(start, start + ROWS_AT_ONCE)
        parts.append(model.read_documents(texts[rows], codes[rows]))
    return parts[0].followed_by(*parts[1:])


@torch.inference_mode()
def search(
    model: BlockSearchModel, documents: DocumentKeys, query: str, *, beam: int = BEAM, best: int = BEST
) -> Found:
    """Decode the most probable codes of documents by beam search.

    The log-probability of a code is the sum over its digits of the log-softmax over the ten digits. Only prefixes
    that a document's code has are continued.

    Parameters
    ----------
    model : BlockSearchModel
    documents : DocumentKeys
        As `read_corpus` gives them.
    query : str
    beam : int, default 25
        Prefixes that are continued after each digit.
    best : int, default 5
        Documents to return; all others follow by R.
    """
    codes = np.array([digits_of(code) for code in documents.codes.tolist()])  # (documents, digits)
    read = model.read_queries(model.query_ids(query), documents)
    routing, keys = read.routing[0].double().cpu().numpy(), read.keys
    prefixes, sums, logits = np.zeros((1, 0), np.int64), np.zeros(1), read.logits[:, -1]
    for place in range(DIGITS):
        steps = logits.log_softmax(-1).double().cpu().numpy()  # (prefixes, 10)
        allowed = {tuple(code) for code in codes[:, : place + 1].tolist()}
        continued = [
            (-(sums[row] + steps[row, digit]), (*prefix, digit), row)
            for row, prefix in enumerate(prefixes.tolist())
            for digit in range(10)
            if (*prefix, digit) in allowed
        ]
        continued = sorted(continued)[:beam]
        prefixes = np.array([prefix for _, prefix, _ in continued])
        sums = np.array([-cost for cost, _, _ in continued])
        if place + 1 < DIGITS:
            rows = torch.tensor([row for _, _, row in continued], device=model.device)
            logits, keys = _next(model, documents, prefixes[:, -1], keys.chosen(rows), read.selected)
    number_of = {tuple(code): number for number, code in enumerate(codes.tolist())}
    numbers = np.array([number_of[tuple(code)] for code in prefixes.tolist()], np.int64)
    return Found(numbers[:best], sums[:best], routing)


def _next(
    model: BlockSearchModel,
    documents: DocumentKeys,
    digits: NDArray[np.int64],
    before: QueryKeys,
    selected: Tensor | None,
) -> tuple[Tensor, QueryKeys]:
    """Logits of the next digit after a digit of each prefix, and the keys so far: (prefixes, 10)."""
    tokens = torch.tensor(model.layout.digits, device=model.device)[torch.from_numpy(digits).to(model.device)]
    read = model.read_queries(tokens[:, None], documents, before, selected)
    return read.logits[:, -1], read.keys
