"""Prompts for answers from texts, and for a judge of answers."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Literal

from spscanner_lab.llm.fencing import fenced_prompt

AnswerLength = Literal["phrase", "sentence", "paragraph"]

_FORMS = {
    "phrase": "the shortest phrase that answers it, not a sentence",
    "sentence": "one short sentence",
    "paragraph": "one short paragraph, without line breaks",
}
_CHOICE_FORM = "the letter of exactly one option, a full stop and the option's words"

_FREEFORM_RULES = (
    "Judge whether a candidate answer to a question says what the reference answer"
    " says. The rules:\n"
    "1. Most of what the candidate says is also in the reference. What it merely"
    " repeats from the question does not count against it.\n"
    "2. It may say more than the reference, as long as all that the reference says is"
    " there and nothing contradicts it.\n"
    "3. A number in the reference must be in the candidate too: the same once it is"
    " rounded to the precision of the reference. What counts is the number as written:"
    ' for the reference 40, "40 thousand" agrees; for the reference 2150, "2.15'
    ' thousand" does not.'
)
_CHOICE_RULES = (
    "Judge whether a candidate answer to a multiple-choice question picks the option"
    " that the reference answer gives. The rules:\n"
    "1. It must be that option, by its letter or by its words.\n"
    "2. It must not pick any other option besides. Words that it repeats from the"
    " question do not matter."
)
_JUDGE_CLOSING = (
    "Compare the two answers step by step: write your reasons after the word REASON and"
    " a colon. Then write, on the last line, the word DECISION, a colon and one word:"
    " YES if the candidate is right by the rules, otherwise NO."
)


def answer_prompt(
    question: str,
    context: str,
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """Return the prompt for an answer from selected sentences or a whole document.

    Examples
    --------
    >>> from spscanner_lab.answers.prompts import answer_prompt
    >>> prompt = answer_prompt("Who signed it?", "The keeper signed it.")
    >>> prompt.splitlines()[-1][-27:]
    'answer: one short sentence.'
    """
    instructions = (
        "Answer a question from a text. The text may be a selection of sentences of a"
        " longer document: connect what belongs together."
    )
    closing = _answer_closing("the text", choices, length)
    return _prompt(instructions, question, choices, {"TEXT": context}, closing)


def window_prompt(
    question: str,
    window: str,
    place: str,
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """Return the prompt for an answer from one window of a long document.

    ``place`` says which window it is, such as "2 of 3".
    """
    instructions = (
        f"Answer a question from part {place} of a long document; neighbouring parts"
        " overlap. If this part does not hold the answer, say so, and say what in it"
        " bears on the question."
    )
    closing = _answer_closing("this part", choices, length, ', or "not in this part"')
    return _prompt(instructions, question, choices, {"PART": window}, closing)


def aggregation_prompt(
    question: str,
    replies: Sequence[str],
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """Return the prompt that combines the replies to windows into one answer."""
    instructions = (
        "A long document was read in overlapping parts, and a question was answered"
        " from each part alone, with reasons. Weigh these answers against each other"
        " and give the answer for the whole document. A part that lacks the answer says"
        " nothing about the others."
    )
    parts = {}
    for number, reply in enumerate(replies, 1):
        parts[f"PART {number} OF {len(replies)}"] = reply.strip()
    closing = _answer_closing("these answers", choices, length)
    return _prompt(instructions, question, choices, parts, closing)


def judge_prompt(
    question: str,
    reference: str,
    answer: str,
    choices: Sequence[str] = (),
    *,
    multiple_choice: bool = False,
) -> str:
    """Return the prompt for the judge.

    Question, options and both answers are fenced, as documents are. A question with
    ``choices``, or with ``multiple_choice`` if its options are not known, is judged by
    the option that is picked.
    """
    is_choice = multiple_choice or bool(choices)
    rules = _CHOICE_RULES if is_choice else _FREEFORM_RULES
    answers = {"REFERENCE ANSWER": reference, "CANDIDATE ANSWER": answer}
    return _prompt(rules, question, choices, answers, _JUDGE_CLOSING)


def _prompt(
    instructions: str,
    question: str,
    choices: Sequence[str],
    material: Mapping[str, str],
    closing: str,
) -> str:
    sections = {"QUESTION": question}
    if choices:
        letters = zip(ascii_uppercase, choices, strict=False)
        options = [f"{letter}. {choice}" for letter, choice in letters]
        sections["OPTIONS"] = "\n".join(options)
    return fenced_prompt(instructions, {**sections, **material}, closing)


def _answer_closing(
    source: str, choices: Sequence[str], length: AnswerLength, or_none: str = ""
) -> str:
    form = _CHOICE_FORM if choices else _FORMS[length]
    return (
        f"Reason step by step from {source}: write your reasons after the word REASON"
        " and a colon. Then write, on the last line, the word ANSWER, a colon and your"
        f" answer: {form}{or_none}."
    )
