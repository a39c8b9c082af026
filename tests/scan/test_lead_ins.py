"""Items of a list stand beside their lead-in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.scan.lead_ins import LONGEST_LIST, with_lead_ins
from spscanner_rag.text.sentence_marks import sentence_marks

WEIGHTS = MeaningWeights(items=0.5, lead_in=0.5)
LEAD_IN = "You get help with:"


def changed(logits: list[float], *sentences: str) -> list[float]:
    marks = sentence_marks(sentences)
    return with_lead_ins(np.float32(logits), marks, WEIGHTS).tolist()


def test_items_get_a_share_of_what_their_lead_in_is_ahead() -> None:
    assert changed([4, 0, -2], LEAD_IN, "- rent", "- heating") == [4, 2, 1]


def test_a_lead_in_gets_a_share_of_what_its_best_item_is_ahead() -> None:
    assert changed([0, 4, 2], LEAD_IN, "- rent", "- heating") == [2, 4, 2]


def test_lines_without_a_full_stop_are_items_too() -> None:
    assert changed([4, 0, -2], LEAD_IN, "rent", "It rained.") == [4, 2, -2]


def test_a_sentence_ends_the_list() -> None:
    logits = [4, 0, -2, 0]
    assert changed(logits, LEAD_IN, "It rained.", "- rent", LEAD_IN) == logits


def test_a_lead_in_within_a_list_is_no_item() -> None:
    assert changed([4, 0, -2], LEAD_IN, LEAD_IN, "rent") == [4, 0, -1]


def test_a_long_list_is_not_read_to_its_end() -> None:
    items = ["- rent"] * (LONGEST_LIST + 1)
    after = changed([4, *[0] * len(items)], LEAD_IN, *items)
    assert after == [4, *[2] * LONGEST_LIST, 0]


@given(st.lists(st.floats(-20, 20, width=16), max_size=12), st.data())
def test_nothing_loses_and_no_order_with_others_is_turned(
    logits: list[float], data: st.DataObject
) -> None:
    kind = st.sampled_from([LEAD_IN, "- rent", "It rained."])
    sentences = [data.draw(kind) for _ in logits]
    after = changed(logits, *sentences)
    highest = max(logits, default=0)
    for before, now, sentence in zip(logits, after, sentences, strict=True):
        assert before <= now <= highest
        if sentence == "It rained.":
            assert now == before
