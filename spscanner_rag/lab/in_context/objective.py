"""What a step lowers: the loss of the right digits, and the losses that a recipe gives a weight."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spscanner_rag.lab.in_context.batches import Batch
from spscanner_rag.lab.in_context.layout import digits_of
from spscanner_rag.lab.in_context.losses import (
    auxiliary_loss,
    copying_loss,
    digit_loss,
    digits_after,
    sampled_digits,
)
from spscanner_rag.lab.in_context.model import BlockSearchModel


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the losses beside that of the digits; a loss without a weight is not computed."""

    auxiliary: float = 0.0
    routing: float = 0.0
    copying: float = 0.0
    temperature: float = 1.0  # divides the teacher's scores of the auxiliary loss before their softmax


@dataclass(frozen=True, slots=True)
class Losses:
    """Scalars, each without its weight; 0 where it was not computed."""

    digits: Tensor
    auxiliary: Tensor
    routing: Tensor
    copying: Tensor

    def weighted(self, weights: Weights) -> Tensor:
        """The sum that training lowers: scalar."""
        return (
            self.digits
            + weights.auxiliary * self.auxiliary
            + weights.routing * self.routing
            + weights.copying * self.copying
        )


def batch_losses(model: BlockSearchModel, batch: Batch, weights: Weights) -> Losses:
    """The losses of a batch."""
    documents = model.read_documents(batch.texts, batch.codes)
    queries = [
        torch.from_numpy(model.layout.query(question)).to(model.device) for question in batch.questions
    ]
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
