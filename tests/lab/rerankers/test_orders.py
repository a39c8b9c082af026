"""Orders of passages: they find the best with few prompts, whatever models reply."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.rerankers.orders import ORDERS, TOP, Comparison


class Judge:
    """Ranks passages, which are numbers, the highest first; counts prompts."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        passages = re.findall(r"^\[(\d+)\] (\d+)$", prompt, re.MULTILINE)
        best_first = sorted(passages, key=lambda passage: -int(passage[1]))
        return " > ".join(f"[{identifier}]" for identifier, _ in best_first)


def ordered(name: str, order: list[int], ask: object) -> list[int]:
    """The passages 0, 1, ..., each with its number as text, in the new order."""
    passages = [str(number) for number in range(len(order))]
    ORDERS[name](order, Comparison("Which?", passages, ask))  # type: ignore[arg-type]
    return order


@pytest.mark.parametrize(
    ("name", "prompts"), [("listwise", 9), ("pairwise", 1890), ("setwise", 318)]
)
def test_the_ten_best_come_first(name: str, prompts: int) -> None:
    order = list(range(100))
    random.Random(1).shuffle(order)
    judge = Judge()
    assert ordered(name, order, judge)[:TOP] == list(range(99, 89, -1))
    assert sorted(order) == list(range(100))
    assert len(judge.prompts) == prompts


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_few_passages(name: str, length: int) -> None:
    assert ordered(name, list(range(length)), Judge()) == list(range(length))[::-1]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("reply", [None, "hm", "[0]", "[999]"])
def test_without_a_usable_reply_the_order_stays(name: str, reply: str | None) -> None:
    order = [3, 1, 0, 2, 4]
    assert ordered(name, order, lambda prompt: reply) == [3, 1, 0, 2, 4]


def test_a_position_bias_swaps_no_pair() -> None:
    order = [2, 0, 1]
    assert ordered("pairwise", order, lambda prompt: "[2]") == [2, 0, 1]


@given(st.lists(st.text("[]>123456789 ", max_size=40), max_size=20), st.data())
def test_any_reply_gives_an_order(replies: list[str], data: st.DataObject) -> None:
    waiting = iter(replies)
    name = data.draw(st.sampled_from(list(ORDERS)))
    order = ordered(name, list(range(30)), lambda prompt: next(waiting, None))
    assert sorted(order) == list(range(30))
