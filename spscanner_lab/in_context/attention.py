"""Attention of queries to the tokens of documents and to earlier ones of the query."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Attended(NamedTuple):
    """What the queries of a layer attend to."""

    queries: Tensor  # (queries, heads, tokens, head_dim)
    keys: Tensor  # (kv_heads, document tokens, head_dim)
    values: Tensor  # (kv_heads, document tokens, head_dim)
    own_keys: Tensor  # (queries, kv_heads, own tokens, head_dim)
    own_values: Tensor  # (queries, kv_heads, own tokens, head_dim)
    factor: Tensor  # of the scores


def query_attention(
    seen: Attended, sink: Tensor | None = None, share: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Attention of queries to all document tokens and, causally, to their own tokens.

    weights = softmax_t(factor * q . k_t / sqrt(head_dim)), where SSMax (Nakanishi 2025,
    "Scalable-Softmax Is Superior for Attention") has the factor s_L * log N, and plain
    attention 1. A ``sink`` adds exp(sink) to the denominator, which multiplies the
    weights by sigmoid(logsumexp(scores) - sink) (proposition 1, appendix H); ``share``
    is the part of that gate that acts. Returns the mixed values, shaped like the
    queries, and the last token's scores without the factor: (queries, heads, document
    tokens).
    """
    values, own_values = seen.values, seen.own_values
    to_documents, scaled = _scores(seen)
    weights = torch.softmax(scaled, -1)
    if sink is not None:
        gate = torch.sigmoid(scaled.logsumexp(-1, keepdim=True) - sink)
        weights = weights * (1 - share + share * gate)
    weights = weights.to(values.dtype)
    of_documents = weights[..., : values.shape[1]]
    of_own = weights[..., values.shape[1] :]
    mixed = torch.einsum("nvgtk,vkw->nvgtw", of_documents, values)
    mixed = mixed + torch.einsum("nvgtk,nvkw->nvgtw", of_own, own_values)
    last = to_documents[..., -1, :].flatten(1, 2)
    return mixed.reshape(seen.queries.shape), last


def _scores(seen: Attended) -> tuple[Tensor, Tensor]:
    """Scores of document tokens without the factor, and of all tokens with it.

    Both are (queries, kv_heads, heads of each, tokens, ...). A query's own tokens
    follow the documents', and later ones have -infinity.
    """
    queries, keys, own_keys = seen.queries, seen.keys, seen.own_keys
    n, _, tokens, width = queries.shape
    # (queries, kv_heads, heads of each, tokens, head_dim)
    grouped = queries.view(n, keys.shape[0], -1, tokens, width) / math.sqrt(width)
    to_documents = torch.einsum("nvgtw,vkw->nvgtk", grouped, keys)
    to_own = torch.einsum("nvgtw,nvkw->nvgtk", grouped, own_keys)
    query_tokens = own_keys.shape[2]
    later = torch.ones(
        tokens, query_tokens, dtype=torch.bool, device=queries.device
    ).triu(query_tokens - tokens + 1)
    # masked after the product, since otherwise the gradient of the factor would be 0 *
    # infinity
    own = (seen.factor * to_own).masked_fill(later, -math.inf)
    return to_documents, torch.cat([seen.factor * to_documents, own], -1).float()


class GoldSignal(NamedTuple):
    """What each head's softmax has of the gold tokens: (heads,) each.

    ``mass`` is sigmoid(-gap), the sum of the softmax's weights on gold tokens.
    """

    largest: Tensor  # the largest score of a gold token
    gap: Tensor  # logsumexp of all other scores minus that of the gold ones
    mass: Tensor


def gold_signal(seen: Attended, is_gold: Tensor) -> GoldSignal:
    """Compare the scores of gold tokens with all others (table 9, appendix G).

    ``seen`` has one query, whose last token counts; ``is_gold`` says which document
    tokens are gold. Heads that see none have -infinity, infinity and 0.
    """
    _, scaled = _scores(seen)
    scores = scaled[0, ..., -1, :].flatten(0, 1)  # (heads, tokens)
    own_tokens = scores.shape[1] - len(is_gold)
    of_gold = torch.cat([is_gold, is_gold.new_zeros(own_tokens)])
    gold_scores = scores.masked_fill(~of_gold, -math.inf)
    others = scores.masked_fill(of_gold, -math.inf).logsumexp(-1)
    gap = others - gold_scores.logsumexp(-1)
    return GoldSignal(gold_scores.amax(-1), gap, torch.sigmoid(-gap))


def max_similarities(scores: Tensor, document_of: Tensor, documents: int) -> Tensor:
    """MaxSim(d) = max_{t in d} s_t (section 4.1): (queries, heads, documents).

    S: (queries, heads, tokens).

    R(d) is its sum over heads. A document without tokens has -infinity.
    """
    best = scores.new_full((*scores.shape[:2], documents), -math.inf)
    return best.scatter_reduce(2, document_of.expand_as(scores), scores, "amax")
