"""A question for somebody's words finds those of others later."""

import numpy as np
import pytest

from spscanner_rag.scan.who_said_it import said_by_others
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.speakers import speakers_of

CHAT = [
    "Nina: I moved to Lisbon in March, and the flat is small.",
    "Omar: Nice! I moved to Oslo in May, since my firm has an office there.",
    "Nina: Is it cold?",
    "Omar: Very. I bought two coats.",
    "Nina: I bought a bicycle for the hills.",
    "Omar: See you in June.",
]


def others(query: str) -> list[bool] | None:
    found = said_by_others(query, speakers_of(CHAT))
    return None if found is None else found.tolist()


def test_what_the_asked_one_says_is_not_said_by_others() -> None:
    assert others("Where did Nina move?") == [False, True] * 3
    assert others("What did Omar buy?") == [True, False] * 3


@pytest.mark.parametrize(
    "query",
    [
        "Where did they move?",
        "Who told Nina about Oslo?",
        "Where did Nina and Omar move?",
        "Wohin ist Nina im M\u00e4rz gezogen und warum?",
    ],
)
def test_otherwise_nobody_is_another(query: str) -> None:
    found = others(query)
    assert found is None or not any(found)


def test_a_text_that_is_no_conversation_has_no_others() -> None:
    text = ["Nina moved to Lisbon.", "Omar moved to Oslo.", "It rained."]
    assert said_by_others("Where did Nina move?", speakers_of(text)) is None


@pytest.mark.parametrize(
    ("asked", "answer", "wrong_person"),
    [
        ("Where did Nina move?", "Lisbon", "Where did Nina open an office?"),
        ("What did Omar buy?", "two coats", "What did Omar buy for the hills?"),
    ],
)
def test_a_scanner_finds_the_words_of_the_one_who_is_asked_for(
    bundled: Scanner, asked: str, answer: str, wrong_person: str
) -> None:
    text = "\n".join(CHAT)
    result = bundled.scan(asked, text)
    assert answer in result.select(1)[0].text
    wrong = bundled.scan(wrong_person, text)
    assert result.answerable is not None
    assert wrong.answerable is not None
    assert wrong.answerable < result.answerable


def test_units_that_nobody_says_stay() -> None:
    text = ["Minutes of March", *CHAT]
    found = said_by_others("Where did Nina move?", speakers_of(text))
    assert found is not None
    assert np.array_equal(found, [False] + [False, True] * 3)
