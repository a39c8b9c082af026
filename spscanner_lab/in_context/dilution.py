"""Attention dilution: how much a query attends to its gold documents."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from spscanner_lab.in_context.attention import (
    Attended,
    max_similarities,
    query_attention,
)
from spscanner_lab.in_context.model import BlockSearchModel, DocumentKeys


class Dilution(NamedTuple):
    """What a query reads in each layer at its last token (section 4.1).

    That token predicts the first digit.
    """

    # R_any: whether at least one head ranks a gold document first by MaxSim
    any_head: list[bool]
    all_heads: list[bool]  # R_sum: whether the sum of all heads' MaxSim does
    # GoldShare: |a_G| / |a|, where a_G is the part of the output a from gold tokens
    gold_share: list[float]
    output_norm: list[float]  # |a|


@torch.inference_mode()
def dilution(
    model: BlockSearchModel, documents: DocumentKeys, query: str, gold: Collection[int]
) -> Dilution:
    """Measure where a query's attention goes.

    Figure 3 and table 1 have averages over queries.

    a is a layer's attention output before it is added to the residual, so that a = a_G
    + the rest; of several ``gold`` documents, any may be first, and all are in a_G.
    Layers above the routing layer see what it selected.
    """
    document_of = documents.document_of
    shares_by_layer = Dilution([], [], [], [])
    is_gold = torch.isin(document_of, torch.tensor(list(gold), device=model.device))

    def watch(layer: int, seen: Attended, token_numbers: Tensor | None) -> None:
        every = (
            torch.arange(len(is_gold), device=model.device)
            if token_numbers is None
            else token_numbers
        )
        last = seen._replace(queries=seen.queries[:, :, -1:])
        output, scores = query_attention(last)
        gold_values = last.values * is_gold[every][:, None]
        only_gold = last._replace(
            values=gold_values, own_values=torch.zeros_like(last.own_values)
        )
        of_gold, _ = query_attention(only_gold)
        to_output = model.decoder.model.layers[layer].self_attn.o_proj.weight
        output_norm, gold_norm = (
            (mixed.flatten() @ to_output.T).norm() for mixed in (output, of_gold)
        )
        # (heads, documents)
        similar = max_similarities(scores, document_of[every], documents.documents)[0]
        shares_by_layer.any_head.append(
            bool(set(similar.argmax(-1).tolist()) & set(gold))
        )
        shares_by_layer.all_heads.append(int(similar.sum(0).argmax()) in gold)
        shares_by_layer.gold_share.append(float(gold_norm / output_norm))
        shares_by_layer.output_norm.append(float(output_norm))

    model.read_queries(model.query_ids(query), documents, watch=watch)
    return shares_by_layer
