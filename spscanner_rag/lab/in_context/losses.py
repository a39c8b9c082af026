"""The losses of in-context retrieval: the digits of the right code, and an on-policy loss on all candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from spscanner_rag.lab.in_context.document_keys import DocumentKeys
from spscanner_rag.lab.in_context.layout import DIGITS, digits_of
from spscanner_rag.lab.in_context.model import BlockSearchModel


def digit_loss(logits: Tensor, digits: Tensor) -> Tensor:
    """Cross-entropy of the digits of the right codes, averaged over digits and queries: scalar.

    ``logits`` are (queries, DIGITS, 10), those of place t after the right digits before t; ``digits`` is (queries,
    DIGITS).
    """
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), digits.flatten())


def auxiliary_targets(prefixes: Tensor, candidates: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """What the next digit should be after each digit of a prefix.

    M_t are the candidates whose code begins with the first t digits of the prefix, and q_t(x) is proportional to
    the weights of those of M_t whose digit t is x.

    Parameters
    ----------
    prefixes : (queries, DIGITS), integer
        The sampled digits.
    candidates : (queries, candidates, DIGITS), integer
        The digits of each candidate's code.
    weights : (queries, candidates)
        Not negative.

    Returns
    -------
    targets : (queries, DIGITS, 10)
        Each sums to 1, or to 0 where M_t is empty.
    known : (queries, DIGITS), bool
        Whether M_t has a candidate.
    """
    same = candidates == prefixes[:, None]  # (queries, candidates, DIGITS)
    begins = torch.cat([torch.ones_like(same[..., :1]), same[..., :-1].cumprod(-1).bool()], -1)
    digits = torch.nn.functional.one_hot(candidates, 10).to(
        weights.dtype
    )  # (queries, candidates, DIGITS, 10)
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

    The code stands at the document's start, so what is learnt is to find it again and to copy it, which a query
    has to do too. Not in the published training, whose model can copy before it begins.
    """
    rows = [torch.from_numpy(model.layout.document(t, c).ids) for t, c in zip(texts, codes, strict=True)]
    hidden = model.decoder.model(
        input_ids=pad_sequence(rows, batch_first=True).to(model.device)
    ).last_hidden_state
    first = torch.tensor([len(row) for row in rows], device=model.device) - model.layout.closing_tokens
    places = first[:, None] - 1 + torch.arange(DIGITS, device=model.device)  # (documents, DIGITS)
    before = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
    right = torch.tensor([digits_of(code) for code in codes], device=model.device)
    return digit_loss(model.digit_logits(before), right)


@dataclass(frozen=True)
class DigitsRead:
    """What reading queries with digits after them gives."""

    logits: Tensor  # (queries, digits + 1, 10): of each digit after those before it
    routing: Tensor  # (queries, documents): R at the last token of each query


def digits_after(
    model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys, digits: Tensor
) -> DigitsRead:
    """Read queries with the first digits of a code.

    ``queries`` are (tokens,) each, ``digits`` is (queries, digits). The queries are the rows of one batch; a
    causal mask keeps the padding after their ends from all tokens before it.
    """
    tokens = torch.tensor(model.layout.digits, device=model.device)[digits]  # (queries, digits)
    rows = [torch.cat([query, own]) for query, own in zip(queries, tokens, strict=True)]
    last = torch.tensor([len(query) - 1 for query in queries], device=model.device)
    read = model.read_queries(pad_sequence(rows, batch_first=True), documents, asking=last)
    places = last[:, None] + torch.arange(digits.shape[1] + 1, device=model.device)  # (queries, digits + 1)
    return DigitsRead(read.logits.gather(1, places[..., None].expand(-1, -1, 10)), read.routing)


@torch.no_grad()
def sampled_digits(model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys) -> Tensor:
    """Codes drawn digit by digit from the model's own probabilities: (queries, DIGITS)."""
    found = torch.zeros(len(queries), 0, dtype=torch.int64, device=model.device)
    for _ in range(DIGITS):
        logits = digits_after(model, queries, documents, found).logits[:, -1]
        found = torch.cat([found, torch.multinomial(logits.softmax(-1), 1)], 1)
    return found
