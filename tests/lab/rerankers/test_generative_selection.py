"""Sentences by number: what is read from replies, and windows of long documents."""

import re

import numpy as np
import pytest

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.rerankers.generative_selection import (
    UNNAMED_LOGIT,
    GenerativeSelection,
    numbers_in,
)
from spscanner_lab.synthesis.scripted import scripted_reply

QUERY = "Who signed the treaty?"
TEXT = "It rained. Nobody signed. The captain signed the treaty. The treaty was long."


def logits_of(scorer: GenerativeSelection, text: str = TEXT) -> np.ndarray:
    return scorer.score_units(QUERY, text, scorer.units_of(text))


def test_the_first_that_is_named_is_the_best() -> None:
    model = LanguageModel("m", lambda prompt: "SENTENCES: 2, 1")
    logits = logits_of(GenerativeSelection(model))
    assert np.argsort(-logits).tolist()[:2] == [2, 1]
    assert (logits > 0).tolist() == [False, True, True, False]
    assert logits[0] == logits[3] == UNNAMED_LOGIT


def test_at_most_so_many_are_taken() -> None:
    model = LanguageModel("m", lambda prompt: "SENTENCES: 3, 2, 1, 0")
    logits = logits_of(GenerativeSelection(model, most_units=2))
    assert (logits > 0).tolist() == [False, False, True, True]


def test_windows_of_a_long_document() -> None:
    windows: list[list[int]] = []

    def ask(prompt: str) -> str:
        numbers = re.findall(r"^\[(\d+)\] ", prompt, re.MULTILINE)
        windows.append(list(map(int, numbers)))
        return f"SENTENCES: {numbers[-1]}, 999, 0"

    scorer = GenerativeSelection(LanguageModel("m", ask), window_characters=50)
    logits = logits_of(scorer)
    assert windows == [[0, 1], [2], [3]]
    assert logits[1] == logits[2] == logits[3] > logits[0] > 0


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("SENTENCES: 3, 1", [3, 1]),
        ("sentences: [4]", [4]),
        ("**SENTENCES:** 2 and 5", [2, 5]),
        ("<think>SENTENCES: 1</think>\nSENTENCES: 2", [2]),
        ("SENTENCES: 1\nSENTENCES: 2", [2]),
        ("SENTENCES: NONE", []),
        ("SENTENCES: -1, 10", []),
        ("The third one.", []),
    ],
)
def test_numbers_in_a_reply(reply: str, numbers: list[int]) -> None:
    assert numbers_in(reply, 0, 10) == numbers


def test_a_failure_is_an_error_and_the_stand_in_replies() -> None:
    def ask(prompt: str) -> str:
        raise TimeoutError("too slow")

    scorer = GenerativeSelection(LanguageModel("slow", ask), asker=Asker(retries=0))
    with pytest.raises(OSError, match="generative:slow did not reply"):
        logits_of(scorer)
    scripted = GenerativeSelection(LanguageModel("scripted", scripted_reply))
    assert (logits_of(scripted) > 0).tolist() == [False, True, True, True]
