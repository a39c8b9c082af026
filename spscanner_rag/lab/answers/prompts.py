"""Prompts for answers, and the answer in a reply."""

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Literal

from spscanner_rag.lab.llm.prompts import fenced_prompt, without_thoughts

AnswerLength = Literal["phrase", "sentence", "paragraph"]

_ANSWER = re.compile(r"\bANSWER\b[*_`\"']*\s*[:：][*_`\"']*")  # noqa: RUF001 - the wide colon is meant
_KINDS = {
    "phrase": "the shortest phrase that answers it, not a sentence",
    "sentence": "one short sentence",
    "paragraph": "one short paragraph, without line breaks",
}


def question_sections(question: str, choices: Sequence[str]) -> dict[str, str]:
    """The sections that every prompt has: the question and, if it is a multiple-choice question, the options."""
    return {"QUESTION": question, **({"OPTIONS": listed(choices)} if choices else {})}


def answer_prompt(
    question: str, context: str, choices: Sequence[str] = (), length: AnswerLength = "sentence"
) -> str:
    """The prompt for an answer from the retrieved sentences, or from a whole document."""
    return fenced_prompt(
        "Answer a question from a text. The text may be a selection of sentences of a longer document: connect "
        "what belongs together.",
        {**question_sections(question, choices), "TEXT": context},
        _closing("the text", choices, length),
    )


def window_prompt(
    question: str,
    window: str,
    number: int,
    windows: int,
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """The prompt for an answer from one window of a document that is longer than the model can read at once."""
    return fenced_prompt(
        f"Answer a question from part {number} of {windows} of a long document; neighbouring parts overlap. If "
        "this part does not hold the answer, say so, and say what in it bears on the question.",
        {**question_sections(question, choices), "PART": window},
        _closing("this part", choices, length, or_none=True),
    )


def aggregation_prompt(
    question: str, replies: Sequence[str], choices: Sequence[str] = (), length: AnswerLength = "sentence"
) -> str:
    """The prompt that makes one answer from the replies to the windows of a document."""
    parts = {f"PART {number} OF {len(replies)}": reply.strip() for number, reply in enumerate(replies, 1)}
    return fenced_prompt(
        "A long document was read in overlapping parts, and a question was answered from each part alone, with "
        "reasons. Weigh these answers against each other and give the answer for the whole document. A "
        "part that lacks the answer says nothing about the others.",
        {**question_sections(question, choices), **parts},
        _closing("these answers", choices, length),
    )


def listed(choices: Sequence[str]) -> str:
    """The options of a multiple-choice question, each after a letter; ``ValueError`` for more than 26."""
    if len(choices) > len(ascii_uppercase):
        raise ValueError(f"choices: got {len(choices)}; expected at most {len(ascii_uppercase)}")
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))


def answer_in(reply: str) -> tuple[str, bool]:
    """The answer in a reply, and whether the reply marks it.

    It is the first line after the last ``ANSWER:``; all of a reply without that word is the answer.
    """
    reply = without_thoughts(reply)
    marks = list(_ANSWER.finditer(reply))
    if not marks:
        return reply, False
    return reply[marks[-1].end() :].strip().partition("\n")[0].strip(" \t\r*_`"), True


def _closing(source: str, choices: Sequence[str], length: AnswerLength, or_none: bool = False) -> str:
    if length not in _KINDS:
        raise ValueError(f"length: got {length!r}; expected one of {', '.join(_KINDS)}")
    form = (
        "the letter of exactly one option, a full stop and the option's words" if choices else _KINDS[length]
    )
    none = ', or "not in this part"' if or_none else ""
    return (
        f"Reason step by step from {source}: write your reasons after the word REASON and a colon. Then write, "
        f"on the last line, the word ANSWER, a colon and your answer: {form}{none}."
    )
