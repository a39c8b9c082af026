"""A language model as the judge of answers: YES or NO with a reason, by the paper's rules."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spscanner_rag.lab.answers.prompts import question_sections
from spscanner_rag.lab.llm.asking import Asker, Reply
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.prompts import fenced_prompt, without_thoughts

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


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer to be judged.

    Attributes
    ----------
    question, answer
    references
        Right answers, at least one that is not blank; it is enough to agree with one of them.
    choices
        The options of a multiple-choice question, empty for others.
    """

    question: str
    answer: str
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge decided.

    Attributes
    ----------
    correct
        True if any reply says YES, False if all say NO; None if neither, as a reply is missing or unreadable.
    replies
        The judge's replies, one for each reference; None for a missing one.
    unparsable
        Number of replies without a clear decision.
    errors
        Why replies are missing.
    """

    correct: bool | None
    replies: tuple[str | None, ...]
    unparsable: int = 0
    errors: tuple[str, ...] = ()


def judge_prompt(question: str, reference: str, answer: str, choices: Sequence[str] = ()) -> str:
    """The prompt for the judge; question, options and both answers are fenced as documents are."""
    answers = {"REFERENCE ANSWER": reference, "CANDIDATE ANSWER": answer}
    sections = {**question_sections(question, choices), **answers}
    return fenced_prompt(_CHOICE_RULES if choices else _FREEFORM_RULES, sections, _CLOSING)


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


def references_of(answers: Iterable[str]) -> tuple[str, ...]:
    """The different answers among these, in order, without blank ones."""
    return tuple(dict.fromkeys(answer.strip() for answer in answers if answer.strip()))


def judge_answers(
    judge: LanguageModel, judgements: Iterable[Judgement], asker: Asker | None = None
) -> list[Verdict]:
    """Ask the judge about every answer, once for each of its references, as the paper does.

    Parameters
    ----------
    judge : LanguageModel
        From `language_model_of`. The paper's script sets its temperature to 0.
    judgements : iterable of Judgement
        The answers; verdicts have the same order.
    asker : Asker, optional
        How the judge is asked. Default: `Asker()`, which stores nothing.

    Raises
    ------
    ValueError
        For a judgement without a reference.
    """
    judgements = list(judgements)
    references = [references_of(judgement.references) for judgement in judgements]
    if () in references:
        asked = judgements[references.index(())].question
        raise ValueError(f"question {asked!r:.80} has no reference answer; leave it out, it cannot be judged")
    prompts = (
        judge_prompt(judgement.question, reference, judgement.answer, judgement.choices)
        for judgement, each in zip(judgements, references, strict=True)
        for reference in each
    )
    replies = iter((asker or Asker()).ask(judge, prompts))
    return [_verdict([next(replies) for _ in each]) for each in references]


def _verdict(replies: Sequence[Reply]) -> Verdict:
    decisions = [None if reply.text is None else decision_in(reply.text) for reply in replies]
    unknown = decisions.count(None)
    errors = tuple(reply.error for reply in replies if reply.error is not None)
    return Verdict(
        correct=True if True in decisions else None if unknown else False,
        replies=tuple(reply.text for reply in replies),
        unparsable=unknown - len(errors),
        errors=errors,
    )
