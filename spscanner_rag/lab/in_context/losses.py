"""The losses of in-context retrieval: the digits of the right code, and those of a teacher's candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

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


def batch_loss(model: BlockSearchModel, batch: Batch, auxiliary_weight: float = 0.0) -> Tensor:
    """The loss of a batch, averaged over digits and queries: a scalar."""
    device = model.device
    documents = model.read_documents(batch.texts, batch.codes)
    queries = [model.query_ids(question)[0] for question in batch.questions]
    codes = torch.tensor([digits_of(code) for code in batch.codes], device=device)  # (documents, DIGITS)
    right = codes[[column[0] for column in batch.columns]]
    logits = digits_after(model, queries, documents, right[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), right.flatten())
    if not auxiliary_weight:
        return loss
    sampled = sampled_digits(model, queries, documents)
    logits = digits_after(model, queries, documents, sampled[:, :-1])
    shares = [torch.tensor(scores, device=device).softmax(0) for scores in batch.teacher]
    # a shorter column is filled up with codes that have no share
    weights = pad_sequence(shares, batch_first=True)
    candidates = pad_sequence([codes[column] for column in batch.columns], batch_first=True)
    return loss + auxiliary_weight * auxiliary_loss(logits, sampled, candidates, weights)


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
    total = sums.sum(-1, keepdim=True)
    return sums / total.clamp_min(1e-12), total[..., 0] > 0


def auxiliary_loss(logits: Tensor, prefixes: Tensor, candidates: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy against `auxiliary_targets`, averaged over the places with candidates: scalar.

    ``logits`` are (queries, DIGITS, 10), those of place t after the first t digits of ``prefixes``.
    """
    targets, known = auxiliary_targets(prefixes, candidates, weights)
    losses = -(targets * logits.log_softmax(-1)).sum(-1)  # (queries, DIGITS)
    return losses[known].mean()


def digits_after(
    model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys, digits: Tensor
) -> Tensor:
    """Logits of each digit after those before it, (queries, digits + 1, 10).

    The queries, (tokens,) each, are rows of one batch, with the first ``digits`` of a code, (queries, digits).
    """
    tokens = torch.tensor(model.layout.digits, device=model.device)[digits]  # (queries, digits)
    rows = [torch.cat([query, own]) for query, own in zip(queries, tokens, strict=True)]
    last = torch.tensor([len(query) - 1 for query in queries], device=model.device)
    read = model.read_queries(pad_sequence(rows, batch_first=True), documents)
    places = last[:, None] + torch.arange(digits.shape[1] + 1, device=model.device)  # (queries, digits + 1)
    return read.logits.gather(1, places[..., None].expand(-1, -1, 10))


@torch.no_grad()
def sampled_digits(model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys) -> Tensor:
    """Draw codes digit by digit from the model's own probabilities: (queries, DIGITS)."""
    found = torch.zeros(len(queries), 0, dtype=torch.int64, device=model.device)
    for _ in range(DIGITS):
        logits = digits_after(model, queries, documents, found)[:, -1]
        found = torch.cat([found, torch.multinomial(logits.softmax(-1), 1)], 1)
    return found
