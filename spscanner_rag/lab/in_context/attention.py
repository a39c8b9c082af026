"""Attention of queries to documents: one softmax over the tokens of all documents and of the query before."""

import math

import torch
from torch import Tensor


def query_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    own_keys: Tensor,
    own_values: Tensor,
    factor: Tensor,
    *,
    hidden: Tensor | None = None,
    asking: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of the tokens of queries to all document tokens, and causally to their own.

    weights = softmax_t(factor * q . k_t / sqrt(head_dim)), where SSMax (Nakanishi 2025, "Scalable-Softmax Is
    Superior for Attention") has the factor s_L * log N, and plain attention 1.

    Parameters
    ----------
    queries : (queries, heads, tokens, head_dim)
    keys, values : (kv_heads, document tokens, head_dim)
    own_keys, own_values : (queries, kv_heads, own tokens, head_dim)
        The last ``tokens`` of the own tokens are those of ``queries``.
    factor : scalar, or (queries, 1, 1, 1, 1)
    hidden : (queries, document tokens), bool, optional
        The document tokens that a query does not attend to. Default: none.
    asking : (queries,), integer, optional
        The token of each query whose scores are returned. Default: the last.

    Returns
    -------
    mixed : (queries, heads, tokens, head_dim)
    scores : (queries, heads, document tokens)
        q . k_t / sqrt(head_dim) of each query's asking token, without the factor.
    """
    n, heads, tokens, width = queries.shape
    grouped = queries.view(n, keys.shape[0], -1, tokens, width) / math.sqrt(
        width
    )  # (n, kv, group, tokens, width)
    to_documents = torch.einsum("nvgtw,vkw->nvgtk", grouped, keys)
    to_own = torch.einsum("nvgtw,nvkw->nvgtk", grouped, own_keys)
    own = own_keys.shape[2]
    later = torch.ones(tokens, own, dtype=torch.bool, device=queries.device).triu(own - tokens + 1)
    # masked after the product: the gradient of the factor would be 0 * infinity
    of_corpus = factor * to_documents
    if hidden is not None:
        of_corpus = of_corpus.masked_fill(hidden[:, None, None, None], -math.inf)
    scaled = torch.cat([of_corpus, (factor * to_own).masked_fill(later, -math.inf)], -1)
    weights = torch.softmax(scaled.float(), -1).to(values.dtype)
    of_documents, of_own = weights[..., : keys.shape[1]], weights[..., keys.shape[1] :]
    mixed = torch.einsum("nvgtk,vkw->nvgtw", of_documents, values)
    mixed = mixed + torch.einsum("nvgtk,nvkw->nvgtw", of_own, own_values)
    rows = torch.arange(n, device=queries.device)
    places = torch.full_like(rows, tokens - 1) if asking is None else asking
    scores = to_documents[rows, :, :, places].reshape(n, heads, -1)
    return mixed.reshape(n, heads, tokens, width), scores


def routing_scores(scores: Tensor, document_of: Tensor, documents: int) -> Tensor:
    """R(d) = sum over heads of max_{t in d} s_t: (queries, documents).

    ``scores`` are (queries, heads, document tokens), ``document_of`` is (document tokens,).
    """
    best = scores.new_full((*scores.shape[:2], documents), -math.inf)
    best = best.scatter_reduce(2, document_of.expand_as(scores), scores, "amax")
    return best.sum(1)
