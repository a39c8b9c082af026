"""Sentences as questions about themselves: without a name or number, and without some words."""

import random
from collections.abc import Sequence

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.data.entities import entities

DROPPED_SHARE = 0.25
"""Share of the other words that are left out, since an unchanged sentence would teach only to compare strings."""

_LEAST_WORDS, _MOST_WORDS = 8, 50
_LEAST_KEPT = 3
_ASKED = {"year": "which year", "number": "how many", "name": "who or what"}


def masked_questions(
    text: str, spans: Sequence[tuple[int, int]], count: int, draw: random.Random
) -> list[Question]:
    """A `QuestionMaker` of masked sentences; their evidence is the sentence, wherever the text has it."""
    found: list[Question] = []
    for number in draw.sample(range(len(spans)), len(spans)):
        if len(found) == count:
            break
        sentence = text[slice(*spans[number])]
        question = _masked(sentence, draw)
        if question is not None:
            same = tuple(span for span in spans if text[slice(*span)] == sentence)
            found.append(Question("masked", question, same))
    return found


def _masked(sentence: str, draw: random.Random) -> str | None:
    """The sentence as a question; None without an entity, and for a very short or long sentence."""
    if not _LEAST_WORDS <= len(sentence.split()) <= _MOST_WORDS:
        return None
    parts = without_entity(sentence, draw)
    if parts is None:
        return None
    before, asked, after = parts
    kept_before = [word for word in before.split() if draw.random() >= DROPPED_SHARE]
    kept_after = [word for word in after.split() if draw.random() >= DROPPED_SHARE]
    if len(kept_before) + len(kept_after) < _LEAST_KEPT:
        return None
    return " ".join([*kept_before, asked, *kept_after]).rstrip(" .!?,;:") + "?"


def without_entity(sentence: str, draw: random.Random) -> tuple[str, str, str] | None:
    """What stands before a name, year or number of a sentence, words that ask for it, and what follows it.

    None if the sentence has none, except at its start, where a capital says nothing.
    """
    found = entities(sentence)
    if not found:
        return None
    entity = draw.choice(found)
    return sentence[: entity.start()], _ASKED[str(entity.lastgroup)], sentence[entity.end() :]
