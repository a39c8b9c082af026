"""The prompts for answers and for their judge, what the replies say, and which words of an answer are right."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Literal

from spscanner_rag.lab.evidence.metrics import normalized, words_of
from spscanner_rag.lab.llm.language_models import fenced_prompt, without_thoughts

AnswerLength = Literal["phrase", "sentence", "paragraph"]

_ANSWER = re.compile(r"\bANSWER\b[*_`\"']*\s*[:：][*_`\"']*")  # noqa: RUF001 - the wide colon is meant
_KINDS = {
    "phrase": "the shortest phrase that answers it, not a sentence",
    "sentence": "one short sentence",
    "paragraph": "one short paragraph, without line breaks",
}

_FREEFORM_RULES = """\
Judge whether a candidate answer to a question says what the reference answer says. The rules:
1. Most of what the candidate says is also in the reference. What it merely repeats from the question does not \
count against it.
2. It may say more than the reference, as long as all that the reference says is there and nothing contradicts it.
3. A number in the reference must be in the candidate too: the same once it is rounded to the precision of the \
reference. What counts is the number as written: for the reference 40, "40 thousand" agrees; for the reference \
2150, "2.15 thousand" does not."""
_CHOICE_RULES = """\
Judge whether a candidate answer to a multiple-choice question picks the option that the reference answer gives. \
The rules:
1. It must be that option, by its letter or by its words.
2. It must not pick any other option besides. Words that it repeats from the question do not matter."""
_CLOSING = """\
Compare the two answers step by step: write your reasons after the word REASON and a colon. Then write, on the \
last line, the word DECISION, a colon and one word: YES if the candidate is right by the rules, otherwise NO."""

_DECISION = re.compile(
    r"\bdecision\b[\s*_`\"']*(?::+|：|=|-+|–|is\b)[\s*_`\"'(\[]*(yes|no)\b"  # noqa: RUF001
    r"(?=[*_`\"')\]}\s]*(?:$|[.,;:!(–—-]|because\b))",  # noqa: RUF001
    re.IGNORECASE | re.MULTILINE,
)
_EITHER = re.compile(r"\b(yes\W+or\W+(decision\W+)?no|no\W+or\W+(decision\W+)?yes)\b", re.IGNORECASE)
_BARE = re.compile(r"\W*(yes|no)\W*", re.IGNORECASE)
_NOTHING_MORE = re.compile(r"\W*\Z")
_PICK = re.compile(
    r"(?:^|\b(?:option|choice|answer)(?:\s+is)?\b)[\W_]*(?:option\s+)?([A-Z])(?=\W*$|[).:\]*_])",
    re.IGNORECASE,
)
_ANOTHER = re.compile(r"(?<!\w)([A-Z])(?=[).:\]])|(?:\b(?:and|or)\b|[,/&+])[\W_]{0,5}([A-Z])(?!\w)")


def answer_prompt(
    question: str, context: str, choices: Sequence[str] = (), length: AnswerLength = "sentence"
) -> str:
    """The prompt for an answer from the retrieved sentences, or from a whole document."""
    instructions = (
        "Answer a question from a text. The text may be a selection of sentences of a longer document: connect "
        "what belongs together."
    )
    return _prompt(instructions, question, choices, {"TEXT": context}, _closing("the text", choices, length))


def window_prompt(
    question: str, window: str, place: str, choices: Sequence[str] = (), length: AnswerLength = "sentence"
) -> str:
    """The prompt for an answer from one window, such as "2 of 3", of a document too long to be read at once."""
    instructions = (
        f"Answer a question from part {place} of a long document; neighbouring parts overlap. If this part does "
        "not hold the answer, say so, and say what in it bears on the question."
    )
    closing = _closing("this part", choices, length, ', or "not in this part"')
    return _prompt(instructions, question, choices, {"PART": window}, closing)


def aggregation_prompt(
    question: str, replies: Sequence[str], choices: Sequence[str] = (), length: AnswerLength = "sentence"
) -> str:
    """The prompt that makes one answer from the replies to the windows of a document."""
    instructions = (
        "A long document was read in overlapping parts, and a question was answered from each part alone, with "
        "reasons. Weigh these answers against each other and give the answer for the whole document. A "
        "part that lacks the answer says nothing about the others."
    )
    parts = {f"PART {number} OF {len(replies)}": reply.strip() for number, reply in enumerate(replies, 1)}
    return _prompt(instructions, question, choices, parts, _closing("these answers", choices, length))


def judge_prompt(question: str, reference: str, answer: str, choices: Sequence[str] = ()) -> str:
    """The prompt for the judge; question, options and both answers are fenced as documents are."""
    answers = {"REFERENCE ANSWER": reference, "CANDIDATE ANSWER": answer}
    return _prompt(_CHOICE_RULES if choices else _FREEFORM_RULES, question, choices, answers, _CLOSING)


def answer_in(reply: str) -> tuple[str, bool]:
    """The answer, a reply's first line after its last ``ANSWER:`` or all of it, and whether it was marked."""
    reply = without_thoughts(reply)
    marks = list(_ANSWER.finditer(reply))
    if not marks:
        return reply, False
    return reply[marks[-1].end() :].strip().partition("\n")[0].strip(" \t\r*_`"), True


def decision_in(reply: str) -> bool | None:
    """The judge's decision: True for YES, False for NO, None if there is none or it is not clear.

    A decision is the word DECISION, a colon (or dash, or "is"), and YES or NO as a word of its own. If a reply
    contains both, as when the judge quotes the candidate, only a decision that ends the reply counts. A reply of
    only YES or NO counts too.
    """
    reply = without_thoughts(reply)
    if bare := _BARE.fullmatch(reply):
        return bare[1].lower() == "yes"
    found = list(_DECISION.finditer(reply))
    if not found:
        return None
    last = found[-1]
    if _EITHER.search(reply, reply.rfind("\n", 0, last.start()) + 1):
        return None
    if len({match[1].lower() for match in found}) > 1 and not _NOTHING_MORE.match(reply, last.end()):
        return None
    return last[1].lower() == "yes"


def _prompt(
    instructions: str, question: str, choices: Sequence[str], material: Mapping[str, str], closing: str
) -> str:
    letters = zip(ascii_uppercase, choices, strict=False)
    options = {"OPTIONS": "\n".join(f"{letter}. {choice}" for letter, choice in letters)} if choices else {}
    return fenced_prompt(instructions, {"QUESTION": question, **options, **material}, closing)


def _closing(source: str, choices: Sequence[str], length: AnswerLength, or_none: str = "") -> str:
    form = (
        "the letter of exactly one option, a full stop and the option's words" if choices else _KINDS[length]
    )
    return (
        f"Reason step by step from {source}: write your reasons after the word REASON and a colon. Then write, "
        f"on the last line, the word ANSWER, a colon and your answer: {form}{or_none}."
    )


def exact_match(answer: str, references: Iterable[str]) -> float:
    """1.0 if the answer equals one of the references once both are `normalized`, else 0.0."""
    return float(normalized(answer) in map(normalized, references))


def token_f1(answer: str, references: Iterable[str]) -> float:
    """F1 of the `normalized` words of an answer and its nearest reference, repetitions counted: 0 to 1."""
    return max(_f1(normalized(answer).split(), normalized(each).split()) for each in references)


def choice_in(answer: str, choices: Sequence[str]) -> int | None:
    """The option, from 0, whose letter or words an answer gives; None if it is none, several or unclear."""
    words = [words_of(choice) for choice in choices]
    by_words = {i for i, own in enumerate(words) if own and own == words_of(answer)}
    picks = by_words | _by_letter(answer, words)
    return picks.pop() if len(picks) == 1 else None


def _by_letter(answer: str, words: Sequence[str]) -> set[int]:
    """The option whose letter an answer gives, and any other option whose words or letter follow it."""
    letters = ascii_uppercase[: len(words)]
    pick = _PICK.search(answer)
    if pick is None or pick[1].upper() not in letters:
        return set()
    picked = letters.index(pick[1].upper())
    rest = answer[pick.end() :]
    if words_of(rest) == words[picked]:
        return {picked}
    others = {i for i, own in enumerate(words) if own and own == words_of(rest)}
    named = {match[1] or match[2] for match in _ANOTHER.finditer(rest)}
    return {picked} | others | {letters.index(letter) for letter in named if letter in letters}


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))
