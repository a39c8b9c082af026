"""The generative baseline: the model's order, the budget, windows, and useless replies."""

import re

import numpy as np
import pytest

from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.generative import NOT_NAMED, Generative, numbers_in
from spscanner_rag.lab.retriever_names import NameParts, check_name
from spscanner_rag.scorers import Scorer, segment

TEXT = " ".join(f"Sentence {n} tells of the {'ship' if n % 10 == 3 else 'road'} and more." for n in range(40))


def words(text: str) -> int:
    return len(text.split())


def naming_ships(prompt: str) -> str:
    found = re.findall(r"^\[(\d+)\].*ship", prompt, re.MULTILINE)
    return (
        f"<think>SENTENCES: 1</think>They tell of it.\n**SENTENCES:** {', '.join(reversed(found)) or 'NONE'}"
    )


def logits(scorer: Generative) -> np.ndarray:
    assert isinstance(scorer, Scorer)
    return scorer.score_units("What of the ship?", TEXT, segment(scorer, TEXT))


def test_the_order_of_the_model_within_the_budget() -> None:
    scores = logits(Generative(naming_ships, count_tokens=words))
    assert np.argsort(-scores, kind="stable")[:4].tolist() == [33, 23, 13, 3]
    assert (scores > 0).sum() == 4
    assert (scores == NOT_NAMED).sum() == 36
    scores = logits(Generative(naming_ships, count_tokens=words, budget_tokens=16))
    assert np.flatnonzero(scores > 0).tolist() == [23, 33]


def test_windows() -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return naming_ships(prompt)

    scores = logits(Generative(ask, count_tokens=words, window_tokens=160))
    assert len(prompts) == 2
    assert np.flatnonzero(scores > 0).tolist() == [3, 13, 23, 33]
    assert scores[13] == scores[33] > scores[3] == scores[23]


@pytest.mark.parametrize("reply", ["I cannot help.", "SENTENCES: NONE", "SENTENCES: 4000, -7", ""])
def test_useless_replies_name_nothing(reply: str) -> None:
    def ask(prompt: str) -> str:
        return reply

    assert (logits(Generative(ask, count_tokens=words)) == NOT_NAMED).all()


def test_a_model_that_fails_or_is_silent() -> None:
    def failing(prompt: str) -> str:
        raise ConnectionError("no route")

    with pytest.raises(
        OSError, match=r"^generative:failing did not reply: ConnectionError: no route; the same"
    ):
        logits(Generative(failing, count_tokens=words, asker=Asker(retries=0)))

    def silent(prompt: str) -> str:
        return " "

    assert (logits(Generative(silent, count_tokens=words, asker=Asker(retries=0))) == NOT_NAMED).all()


def test_numbers_of_the_last_line() -> None:
    assert numbers_in("Sentences: 3\nSENTENCES: 5, 2, 5, 90", 0, 10) == [5, 2]


def test_names() -> None:
    check_name("generative:openai:gpt-4o-mini")
    assert NameParts.of("cascade:bm25>generative:openai:gpt-4o-mini").asks_a_model
    assert not NameParts.of("cascade:bm25>dense").asks_a_model
    with pytest.raises(ValueError, match="needs a model name"):
        check_name("generative")
    assert Generative(naming_ships, count_tokens=words).name == "generative:naming_ships"
