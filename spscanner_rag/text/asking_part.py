"""The part of a question that asks, where a situation is told before it."""

import re
from typing import Final

from spscanner_rag.text.segmentation import SentenceSegmenter

LONGEST_QUESTION: Final = 4000
"""Characters at the end of a question in which the asking part is looked for."""

SHORTEST_QUESTION: Final = 160
"""Characters of a question that may tell a situation: what comes before the asking
sentence of a shorter one is mostly its subject."""

_QUESTION_ENDS: Final = ("?", "\uff1f", "\u061f", "\u037e")
_CLOSING: Final = " \n\t\"'\u201d\u2019\u00bb)]\u3011\u300d\u300f"
_LABEL: Final = re.compile(
    r"^[ \t]*(?:question|query|user|human|follow[- ]up (?:question|input))[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_ASKING: Final = re.compile(
    r"(?:please |so |and |but )?(?:who|whom|whose|what|which|when|where|why|how|can"
    r"|could|may|might|must|shall|should|will|would|is|are|was|were|am|do|does|did|has|have"
    r"|had|tell me|explain|list|name|find|show|give me|describe"
    r"|i (?:want|need|would like|'d like) to know|i wonder)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_FEWEST_WORDS = 4


def asking_part(question: str) -> str | None:
    """Return the sentences of a question that ask, or None if that is all of it.

    They are those that end with a question mark, else the last one if it begins as a
    question or a request does. Below lines that begin with "Question:", "User:" and the
    like, only what stands after the last one counts.

    Parameters
    ----------
    question : str
        As it was asked. One of fewer than `SHORTEST_QUESTION` characters asks as a
        whole; of a very long one, the last `LONGEST_QUESTION` are looked at.

    Examples
    --------
    >>> from spscanner_rag.text.asking_part import asking_part
    >>> asking_part(
    ...     "I rented a flat for three years and moved out in May. There was a stain on"
    ...     " the carpet, which had been there before. My landlord kept the deposit."
    ...     " May he keep all of the money?"
    ... )
    'May he keep all of the money?'
    >>> asking_part("May a landlord keep the deposit?") is None
    True
    """
    told = question.strip()[-LONGEST_QUESTION:]
    if len(told) < SHORTEST_QUESTION:
        return None
    last_turn = _after_last_label(told)
    sentences = []
    for unit in SentenceSegmenter().segment(last_turn):
        sentence = last_turn[unit.start : unit.end].strip()
        if sentence:
            sentences.append(sentence)
    asking = [sentence for sentence in sentences if _ends_as_question(sentence)]
    if not asking and (last_turn != told or _ASKING.match(sentences[-1])):
        asking = sentences[-1:]
    part = " ".join(asking)
    if part == told or len(_WORD.findall(part)) < _FEWEST_WORDS:
        return None
    return part


def _after_last_label(told: str) -> str:
    """What stands after the last label that has something after it."""
    for label in reversed(list(_LABEL.finditer(told))):
        last_turn = told[label.end() :].strip()
        if last_turn:
            return last_turn
    return told


def _ends_as_question(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING)[-1:] in _QUESTION_ENDS
