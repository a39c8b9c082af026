"""Attention dilution: how much a query attends to its gold documents."""

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor

from spscanner_lab.in_context.attention import (
    Attended,
    GoldSignal,
    gold_signal,
    max_similarities,
    query_attention,
)
from spscanner_lab.in_context.model import BlockSearchModel, DocumentKeys
from spscanner_lab.in_context.prompt import digits_of


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
    # whether the model's head, applied after the layer, predicts a gold first digit
    first_digit: list[bool]
    signals: list[GoldSignal]  # table 9


@torch.inference_mode()
def dilution(
    model: BlockSearchModel, documents: DocumentKeys, query: str, gold: Collection[int]
) -> Dilution:
    """Measure where a query's attention goes.

    Figures 2 and 3 and tables 1 and 9 have averages over queries.

    a is a layer's attention output before it is added to the residual, so that a = a_G
    + the rest; of several ``gold`` documents, any may be first, and all are in a_G.
    Layers above the routing layer see what it selected.
    """
    document_of = documents.document_of
    by_layer = Dilution([], [], [], [], [], [])
    is_gold = torch.isin(document_of, torch.tensor(list(gold), device=model.device))
    codes = documents.codes[list(gold)].tolist()
    first_digits = {digits_of(code)[0] for code in codes}

    def watch(
        layer: int, seen: Attended, token_numbers: Tensor | None, digits: Tensor
    ) -> None:
        every = (
            torch.arange(len(is_gold), device=model.device)
            if token_numbers is None
            else token_numbers
        )
        last = seen._replace(queries=seen.queries[:, :, -1:])
        to_output = model.decoder.model.layers[layer].self_attn.o_proj.weight
        output_norm, share, scores = _gold_share(last, is_gold[every], to_output)
        # (heads, documents)
        similar = max_similarities(scores, document_of[every], documents.documents)[0]
        by_layer.any_head.append(bool(set(similar.argmax(-1).tolist()) & set(gold)))
        by_layer.all_heads.append(int(similar.sum(0).argmax()) in gold)
        by_layer.gold_share.append(share)
        by_layer.output_norm.append(output_norm)
        by_layer.first_digit.append(int(digits[0].argmax()) in first_digits)
        by_layer.signals.append(gold_signal(last, is_gold[every]))

    model.read_queries(model.query_ids(query), documents, watch=watch)
    return by_layer


def _gold_share(
    last: Attended, is_gold: Tensor, to_output: Tensor
) -> tuple[float, float, Tensor]:
    """Return |a|, |a_G| / |a| and the scores of document tokens."""
    output, scores = query_attention(last)
    only_gold = last._replace(
        values=last.values * is_gold[:, None],
        own_values=torch.zeros_like(last.own_values),
    )
    of_gold, _ = query_attention(only_gold)
    output_norm = (output.flatten() @ to_output.T).norm()
    gold_norm = (of_gold.flatten() @ to_output.T).norm()
    return float(output_norm), float(gold_norm / output_norm), scores
