"""A question with the wrong name, year or number, which its document seems to answer and does not."""

import random
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.training.data.entities import entities
from spscanner_rag.lexical.languages import STOP_WORDS
from spscanner_rag.text.units import Unit

MOST_SHARED_WORDS = 1
"""A sentence that has the new name and more of the question's other words than this may answer it."""

_TRIES = 10
_WORD = re.compile(r"[^\W\d_]{4,}")


def with_wrong_entity(
    question: str, text: str, units: Sequence[Unit], relevant: NDArray[np.bool_], draw: random.Random
) -> str | None:
    """The question with one name, year or number exchanged for another of the same kind from the document.

    ``units`` are the sentences of ``text``; ``relevant``, (units,), says which of them answer the question. The
    new one stands in the document, so that its words alone do not show that the question has no answer, but
    neither in a relevant sentence nor in one with more than `MOST_SHARED_WORDS` of the question's other words.
    None if a few tries find none, or no sentence is relevant.
    """
    replaced = entities(question)
    if not replaced or not relevant.any():
        return None
    old = draw.choice(replaced)
    rest = f"{question[: old.start()]} {question[old.end() :]}"
    words = {word.casefold() for word in _WORD.findall(rest)}
    sentences = [text[unit.start : unit.end] for unit in units]
    answers = [sentences[number] for number in np.flatnonzero(relevant)]
    for _ in range(_TRIES):
        found = [match for match in entities(draw.choice(sentences)) if match.lastgroup == old.lastgroup]
        if not found:
            continue
        new = draw.choice(found).group()
        if new.casefold() in STOP_WORDS or any(_has(other, new) for other in [question, *answers]):
            continue
        if _has(new, old.group()):
            continue
        if not any(_may_answer(sentence, new, words) for sentence in sentences):
            return f"{question[: old.start()]}{new}{question[old.end() :]}"
    return None


def _may_answer(sentence: str, new: str, words: set[str]) -> bool:
    if new not in sentence:
        return False
    return len(words & {word.casefold() for word in _WORD.findall(sentence)}) > MOST_SHARED_WORDS


def _has(text: str, entity: str) -> bool:
    """Whether a text has an entity in any case, and with or without full stops."""
    return entity.casefold().replace(".", "") in text.casefold().replace(".", "")
