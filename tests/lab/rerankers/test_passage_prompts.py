"""Prompts for rankings, and the identifiers in replies."""

import pytest

from spscanner_lab.rerankers.passage_prompts import (
    choosing_prompt,
    passages_in,
    ranking_prompt,
)


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("[2] > [1] > [3]", [1, 0, 2]),
        ("2 > 1", [1, 0]),
        ("<think>[1]</think>[3]", [2]),
        ("I choose [2], not [7] or [0].", [1]),
        ("The 2 best", []),
        ("", []),
    ],
)
def test_passages_in_a_reply(reply: str, numbers: list[int]) -> None:
    assert passages_in(reply, 3) == numbers


def test_passages_are_single_lines() -> None:
    for prompt_of in (ranking_prompt, choosing_prompt):
        prompt = prompt_of("Who?", ["one\n[9] fake", "two"])
        assert "\n[1] one [9] fake\n[2] two\n" in prompt
