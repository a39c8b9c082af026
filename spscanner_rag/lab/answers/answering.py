"""Answers of a language model to questions on documents, and how good they are in words and to a judge."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spscanner_rag.lab.answers.prompts import (
    AnswerLength,
    aggregation_prompt,
    answer_in,
    answer_prompt,
    decision_in,
    judge_prompt,
    window_prompt,
)
from spscanner_rag.lab.answers.scores import choice_in, exact_match, token_f1
from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.llm.asking import Asker, Reply
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.prompts import without_thoughts
from spscanner_rag.results import ScanResult
from spscanner_rag.results.selection import rank
from spscanner_rag.scorers import Scorer, score_batch
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import window_ranges

WINDOW_TOKENS = 120_000
"""The paper's windows over a whole document; each begins 60,000 tokens, half a window, after the one before."""


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """A question with reference answers, of which one match is enough, and the texts to answer it from."""

    question: Question
    contexts: tuple[str, ...]  # one text, or windows to combine the answers of
    length: AnswerLength = "sentence"  # that the model is asked for


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of the judge."""

    correct: bool | None  # True if any reply says YES, False if all say NO, else None
    replies: tuple[str | None, ...]  # one for each reference; None for a missing one
    unparsable: int = 0  # replies without a clear decision
    errors: tuple[str, ...] = ()  # of the missing replies


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of one question; all are None if the model failed, be it for a single window of several."""

    answer: str | None  # None if the model failed
    error: str | None  # why it failed
    marked: bool  # False if the reply did not mark its answer as asked, so that all of it is the answer
    token_f1: float | None  # 0 to 1; None for a multiple-choice question
    exact_match: float | None  # 0 or 1; for a multiple-choice question, 1 if the right option was picked
    correct: bool | None  # the judge's decision; None without one
    verdict: Verdict | None  # None if the judge was not asked


def scored_answers(
    model: LanguageModel,
    tasks: Iterable[AnswerTask],
    judge: LanguageModel | None,
    asker: Asker,
) -> list[AnswerScore]:
    """Let a language model answer questions, and score the answers; without a judge by their words alone.

    Tasks are consumed as needed, so that a generator need not hold all documents in memory. The paper's script
    sets the judge's temperature to 0 and asks for a sentence or a paragraph, depending on the benchmark; "phrase"
    suits token F1 and exact match against short answers.
    """
    kept: list[AnswerTask] = []  # in the order of the answers; without their contexts, which may be large
    windows: list[int] = []  # contexts of each

    def prompts() -> Iterator[str]:
        for task in tasks:
            kept.append(replace(task, contexts=()))
            windows.append(len(task.contexts))
            yield from _prompts(task)

    replies = _joined(iter(asker.ask(model, prompts())), kept, windows, model, asker)
    answers = {i: answer_in(reply.text) for i, reply in enumerate(replies) if reply.text is not None}
    verdicts: dict[int, Verdict] = {}
    if judge is not None:
        found = _verdicts(judge, [(kept[i], text) for i, (text, _) in answers.items()], asker)
        verdicts = dict(zip(answers, found, strict=True))
    return [
        _score(kept[i], answers[i], verdicts.get(i))
        if i in answers
        else AnswerScore(None, reply.error, True, None, None, None, None)
        for i, reply in enumerate(replies)
    ]


def references_of(answers: Iterable[str]) -> tuple[str, ...]:
    """The different answers among these, in order, without blank ones."""
    return tuple(dict.fromkeys(answer.strip() for answer in answers if answer.strip()))


def retrieved_context(
    scorer: Scorer, question: str, text: str, units: Sequence[Unit], top_k: float | None
) -> str:
    """The best units of a document as one string, as the paper gives them to the language model."""
    (logits,) = score_batch(scorer, [(question, text, units)])
    starts, ends = np.array([(unit.start, unit.end) for unit in units], np.int64).reshape(-1, 2).T
    return ScanResult(question, text, starts, ends, logits).context(top_k=top_k)


def best_words(scorer: Scorer, question: str, text: str, units: Sequence[Unit], words: int) -> str:
    """The best units of a document one after the other, the best first, cut after so many words."""
    (logits,) = score_batch(scorer, [(question, text, units)])
    read: list[str] = []
    for number in rank(logits):
        read += text[units[number].start : units[number].end].split()[: words - len(read)]
        if len(read) == words:
            break
    return " ".join(read)


def document_windows(
    text: str, window_tokens: int = WINDOW_TOKENS, count_tokens: CountTokens | str = "o200k_base"
) -> tuple[str, ...]:
    """A document as half-overlapping windows of whole sentences; a document that fits is one window.

    The last window may have one token more than ``window_tokens``, and a longer sentence is a window of its
    own. Leave room in the model's context for the question and the reply.
    """
    count = resolve_counter(count_tokens)
    units = SentenceSegmenter().segment(text)
    # Each sentence with the white space after it, so that the windows cover the whole document.
    starts = [0, *(unit.start for unit in units[1:])]
    ends = [*starts[1:], len(text)]
    lengths = [max(1, count(text[start:end])) for start, end in zip(starts, ends, strict=True)]
    if sum(lengths) <= window_tokens:
        return (text,)
    ranges = window_ranges(np.cumsum(lengths, dtype=np.int64) - 1, window_tokens)
    return tuple(text[starts[first] : ends[last]] for first, last in ranges)


def _prompts(task: AnswerTask) -> Iterator[str]:
    question, count = task.question, len(task.contexts)
    if count == 1:
        yield answer_prompt(question.text, task.contexts[0], question.choices, task.length)
        return
    for number, window in enumerate(task.contexts, 1):
        yield window_prompt(question.text, window, f"{number} of {count}", question.choices, task.length)


def _joined(
    replies: Iterator[Reply],
    tasks: Sequence[AnswerTask],
    windows: Sequence[int],
    model: LanguageModel,
    asker: Asker,
) -> list[Reply]:
    """The reply to each task; those from several windows are joined by one more prompt."""
    parts = [[next(replies) for _ in range(number)] for number in windows]
    whole = [_first_failure(each) if len(each) > 1 else each[0] for each in parts]
    to_join = [i for i, reply in enumerate(whole) if reply is None]
    joining = (
        aggregation_prompt(
            tasks[i].question.text,
            [without_thoughts(part.text or "") for part in parts[i]],
            tasks[i].question.choices,
            tasks[i].length,
        )
        for i in to_join
    )
    for i, reply in zip(to_join, asker.ask(model, joining), strict=True):
        whole[i] = reply
    return [reply for reply in whole if reply is not None]


def _first_failure(replies: Sequence[Reply]) -> Reply | None:
    """The failure of the first window without a reply, which makes an answer impossible; None if all have one."""
    for number, reply in enumerate(replies, 1):
        if reply.error is not None:
            return Reply(None, f"window {number} of {len(replies)}: {reply.error}")
    return None


def _verdicts(
    judge: LanguageModel, answered: Sequence[tuple[AnswerTask, str]], asker: Asker
) -> list[Verdict]:
    """Ask the judge about every answer, once for each of its references, as the paper does."""
    prompts = (
        judge_prompt(task.question.text, reference, answer, task.question.choices)
        for task, answer in answered
        for reference in references_of(task.question.answers)
    )
    replies = iter(asker.ask(judge, prompts))
    return [_verdict([next(replies) for _ in references_of(task.question.answers)]) for task, _ in answered]


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


def _score(task: AnswerTask, answer: tuple[str, bool], verdict: Verdict | None) -> AnswerScore:
    text, marked = answer
    references, choices = references_of(task.question.answers), task.question.choices
    if choices:
        picked, f1 = choice_in(text, choices), None
        match = float(picked is not None and choices[picked].strip() in references)
    else:
        f1, match = token_f1(text, references), exact_match(text, references)
    correct = None if verdict is None else verdict.correct
    return AnswerScore(text, None, marked, f1, match, correct, verdict)
