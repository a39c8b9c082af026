"""Attention to documents and the similarities that route, by hand."""

import math

import pytest
import torch

from spscanner_lab.in_context.attention import (
    Attended,
    gold_signal,
    max_similarities,
    query_attention,
)


def test_routing_by_hand() -> None:
    # (1, 2 heads, 4 tokens)
    scores = torch.tensor([[[1.0, 5.0, 2.0, -3.0], [0.0, 1.0, 7.0, -1.0]]])
    found = max_similarities(scores, torch.tensor([0, 0, 1, 2]), 3)
    assert found.tolist() == [[[5.0, 2.0, -3.0], [1.0, 7.0, -1.0]]]


@pytest.mark.parametrize(
    ("sink", "share"),
    [(None, 1.0), (14.0, 1.0), (0.5, 1.0), (-3.0, 1.0), (0.5, 0.25), (0.5, 0.0)],
)
def test_attention_by_hand_with_a_sink_as_a_term_of_the_denominator(
    sink: float | None, share: float
) -> None:
    torch.manual_seed(0)
    queries, keys, values = (
        torch.randn(1, 2, 2, 4),
        torch.randn(1, 3, 4),
        torch.randn(1, 3, 4),
    )
    own_keys, own_values = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 2, 4)
    seen = Attended(queries, keys, values, own_keys, own_values, torch.tensor(0.7))
    mixed, scores = query_attention(
        seen, None if sink is None else torch.tensor(sink), share
    )
    for head in range(2):
        for token in range(2):
            own = torch.cat([keys[0], own_keys[0, 0, : token + 1]])
            of_own = torch.cat([values[0], own_values[0, 0, : token + 1]])
            logits = 0.7 * own @ queries[0, head, token] / 2
            # without a value
            beside = torch.cat(
                [logits, torch.tensor([-math.inf if sink is None else sink])]
            )
            weights = (1 - share) * torch.softmax(logits, 0) + share * torch.softmax(
                beside, 0
            )[:-1]
            torch.testing.assert_close(mixed[0, head, token], weights @ of_own)
        torch.testing.assert_close(scores[0, head], keys[0] @ queries[0, head, 1] / 2)


def test_the_signal_of_gold_tokens_by_hand() -> None:
    """Two heads see three document tokens, of which the second is gold, and one own."""
    queries = torch.tensor([[[[9.0, 9.0], [2.0, 0.0]], [[9.0, 9.0], [0.0, 2.0]]]])
    keys = torch.tensor([[[1.0, 3.0], [2.0, 1.0], [0.0, 1.0]]])
    own_keys = torch.tensor([[[[-1.0, 0.0], [0.5, 2.0]]]])
    seen = Attended(
        queries,
        keys,
        torch.zeros(1, 3, 2),
        own_keys,
        torch.zeros(1, 1, 2, 2),
        torch.tensor(0.5 * math.sqrt(2)),
    )
    # of the last token: half of twice a coordinate of each key
    scores = [[1.0, 2.0, 0.0, -1.0, 0.5], [3.0, 1.0, 1.0, 0.0, 2.0]]
    signal = gold_signal(seen, torch.tensor([False, True, False]))
    assert signal.largest.tolist() == pytest.approx([2.0, 1.0])
    for head, row in enumerate(scores):
        weights = [math.exp(score) for score in row]
        others = sum(weights) - weights[1]
        gap = math.log(others / weights[1])
        assert float(signal.gap[head]) == pytest.approx(gap)
        share = weights[1] / sum(weights)
        assert float(signal.mass[head]) == pytest.approx(share)
    none = gold_signal(seen, torch.tensor([False, False, False]))
    assert none.largest.tolist() == [-math.inf] * 2
    assert none.gap.tolist() == [math.inf] * 2
    assert none.mass.tolist() == [0.0, 0.0]
