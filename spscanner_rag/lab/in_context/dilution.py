"""Attention dilution: how much of what a query reads is of its gold document (section 4 of the paper)."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from spscanner_rag.lab.in_context.model import (
    Attended,
    BlockSearchModel,
    DocumentKeys,
    max_similarities,
    query_attention,
)


class Dilution(NamedTuple):
    """What one query reads in each layer, at its last token, from which the first digit is made (section 4.1)."""

    any_head: list[bool]  # R_any: whether at least one head ranks a gold document first by MaxSim
    all_heads: list[bool]  # R_sum: whether the sum of all heads' MaxSim does
    gold_share: list[float]  # GoldShare: |a_G| / |a|, where a_G is the part of the output a of gold tokens


@torch.inference_mode()
def dilution(model: BlockSearchModel, documents: DocumentKeys, query: str, gold: Collection[int]) -> Dilution:
    """Measure where a query's attention goes; averages over queries are figure 3's and table 1's numbers.

    a is a layer's attention output before it is added to the residual, so that a = a_G + the rest; of several
    ``gold`` documents, any may be first, and all are in a_G. Layers above the routing layer see what it selected.
    """
    document_of, found = documents.document_of, Dilution([], [], [])
    is_gold = torch.isin(document_of, torch.tensor(list(gold), device=model.device))

    def watch(layer: int, seen: Attended, places: Tensor | None) -> None:
        every = torch.arange(len(is_gold), device=model.device) if places is None else places
        last = seen._replace(queries=seen.queries[:, :, -1:])
        output, scores = query_attention(last)
        gold_values = last.values * is_gold[every][:, None]
        only_gold = last._replace(values=gold_values, own_values=torch.zeros_like(last.own_values))
        of_gold, _ = query_attention(only_gold)
        to_output = model.decoder.model.layers[layer].self_attn.o_proj.weight
        whole, part = ((mixed.flatten() @ to_output.T).norm() for mixed in (output, of_gold))
        similar = max_similarities(scores, document_of[every], documents.documents)[0]  # (heads, documents)
        found.any_head.append(bool(set(similar.argmax(-1).tolist()) & set(gold)))
        found.all_heads.append(int(similar.sum(0).argmax()) in gold)
        found.gold_share.append(float(part / whole))

    model.read_queries(model.query_ids(query), documents, watch=watch)
    return found
