"""The losses of in-context retrieval: the digits of the right code, and those that a recipe gives a weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from spscanner_rag.lab.in_context.layout import DIGITS, digits_of
from spscanner_rag.lab.in_context.model import BlockSearchModel, DocumentKeys


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents with codes, and queries that see all of them."""

    texts: list[str]
    codes: list[int]
    questions: list[str]
    columns: list[list[int]]  # the documents of each query's column, the right one first
    teacher: list[Sequence[float]]  # a score for each document of a column


class Weights(NamedTuple):
    """Of the losses beside that of the digits; a loss without a weight is not computed."""

    auxiliary: float = 0.0
    routing: float = 0.0
    copying: float = 0.0
    temperature: float = 1.0  # divides the teacher's scores of the auxiliary loss before their softmax


class Losses(NamedTuple):
    """Scalars, each without its weight; 0 where it was not computed."""

    digits: Tensor
    auxiliary: Tensor
    routing: Tensor
    copying: Tensor

    def weighted(self, weights: Weights) -> Tensor:
        """The sum that training lowers: scalar."""
        further = weights.auxiliary * self.auxiliary + weights.routing * self.routing
        return self.digits + further + weights.copying * self.copying


def batch_losses(model: BlockSearchModel, batch: Batch, weights: Weights) -> Losses:
    """Compute the losses of a batch."""
    documents = model.read_documents(batch.texts, batch.codes)
    queries = [model.query_ids(question)[0] for question in batch.questions]
    codes = torch.tensor(
        [digits_of(code) for code in batch.codes], device=model.device
    )  # (documents, DIGITS)
    right = torch.tensor([column[0] for column in batch.columns], device=model.device)
    read = digits_after(model, queries, documents, codes[right][:, :-1])
    auxiliary = routing = copying = torch.zeros((), device=model.device)
    if weights.routing:
        routing = F.cross_entropy(read.routing.float(), right)
    if weights.copying:
        copying = copying_loss(model, batch.texts, batch.codes)
    if weights.auxiliary:
        sampled = sampled_digits(model, queries, documents)
        candidates, shares = _candidates(batch, codes, weights.temperature)
        logits = digits_after(model, queries, documents, sampled[:, :-1]).logits
        auxiliary = auxiliary_loss(logits, sampled, candidates, shares)
    return Losses(digit_loss(read.logits, codes[right]), auxiliary, routing, copying)


def _candidates(batch: Batch, codes: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Each query's column: codes (queries, candidates, DIGITS) and the teacher's shares (queries, candidates)."""
    most = max(map(len, batch.columns))
    shares = torch.zeros(len(batch.columns), most, device=codes.device)
    candidates = torch.zeros(len(batch.columns), most, codes.shape[1], dtype=torch.int64, device=codes.device)
    for row, (column, scores) in enumerate(zip(batch.columns, batch.teacher, strict=True)):
        shares[row, : len(column)] = torch.softmax(torch.tensor(scores, device=codes.device) / temperature, 0)
        candidates[row, : len(column)] = codes[column]
        candidates[row, len(column) :] = codes[column[0]]  # without a share, so it changes nothing
    return candidates, shares


def digit_loss(logits: Tensor, digits: Tensor) -> Tensor:
    """Cross-entropy of the digits of the right codes, averaged over digits and queries: scalar.

    ``logits`` are (queries, DIGITS, 10), those of place t after the right digits before t; ``digits`` is (queries,
    DIGITS).
    """
    return F.cross_entropy(logits.flatten(0, 1), digits.flatten())


def auxiliary_targets(prefixes: Tensor, candidates: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Distribute the next digit after each digit of a prefix: (queries, DIGITS, 10), and which are known.

    M_t are the candidates, (queries, candidates, DIGITS), whose code begins with the first t digits of the
    prefix, (queries, DIGITS), and q_t(x) is proportional to the ``weights``, (queries, candidates), of those of
    M_t whose digit t is x. Targets sum to 1, or to 0 where M_t is empty.
    """
    same = candidates == prefixes[:, None]  # (queries, candidates, DIGITS)
    begins = torch.cat([torch.ones_like(same[..., :1]), same[..., :-1].cumprod(-1).bool()], -1)
    digits = F.one_hot(candidates, 10).to(weights.dtype)  # (queries, candidates, DIGITS, 10)
    sums = ((weights[:, :, None] * begins)[..., None] * digits).sum(1)  # (queries, DIGITS, 10)
    known = begins.any(1)
    return sums / sums.sum(-1, keepdim=True).clamp_min(1e-12), known


def auxiliary_loss(logits: Tensor, prefixes: Tensor, candidates: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy against `auxiliary_targets`, averaged over the places with candidates: scalar.

    ``logits`` are (queries, DIGITS, 10), those of place t after the first t digits of ``prefixes``.
    """
    targets, known = auxiliary_targets(prefixes, candidates, weights)
    losses = -(targets * logits.log_softmax(-1)).sum(-1)  # (queries, DIGITS)
    return losses[known].mean()


def copying_loss(model: BlockSearchModel, texts: Sequence[str], codes: Sequence[int]) -> Tensor:
    """Cross-entropy of the code at the end of each document, read without any other: scalar.

    The code is at the document's start too, so what is learnt is to find it again and to copy it, which a query
    has to do too. Not in the published training, whose model can copy before it begins.
    """
    rows = [torch.from_numpy(model.layout.document(t, c).ids) for t, c in zip(texts, codes, strict=True)]
    ids = pad_sequence(rows, batch_first=True).to(model.device)
    hidden = model.decoder.model(input_ids=ids).last_hidden_state
    first = torch.tensor([len(row) for row in rows], device=model.device) - model.layout.closing_tokens
    places = first[:, None] - 1 + torch.arange(DIGITS, device=model.device)  # (documents, DIGITS)
    before = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
    right = torch.tensor([digits_of(code) for code in codes], device=model.device)
    return digit_loss(model.digit_logits(before), right)


class DigitsRead(NamedTuple):
    """The result of reading queries with digits after them."""

    logits: Tensor  # (queries, digits + 1, 10): of each digit after those before it
    routing: Tensor  # (queries, documents): R at the last token of each query


def digits_after(
    model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys, digits: Tensor
) -> DigitsRead:
    """Read queries, (tokens,) each, as rows of one batch, with the first digits of a code: (queries, digits)."""
    tokens = torch.tensor(model.layout.digits, device=model.device)[digits]  # (queries, digits)
    rows = [torch.cat([query, own]) for query, own in zip(queries, tokens, strict=True)]
    last = torch.tensor([len(query) - 1 for query in queries], device=model.device)
    read = model.read_queries(pad_sequence(rows, batch_first=True), documents, asking=last)
    places = last[:, None] + torch.arange(digits.shape[1] + 1, device=model.device)  # (queries, digits + 1)
    return DigitsRead(read.logits.gather(1, places[..., None].expand(-1, -1, 10)), read.routing)


@torch.no_grad()
def sampled_digits(model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys) -> Tensor:
    """Draw codes digit by digit from the model's own probabilities: (queries, DIGITS)."""
    found = torch.zeros(len(queries), 0, dtype=torch.int64, device=model.device)
    for _ in range(DIGITS):
        logits = digits_after(model, queries, documents, found).logits[:, -1]
        found = torch.cat([found, torch.multinomial(logits.softmax(-1), 1)], 1)
    return found
