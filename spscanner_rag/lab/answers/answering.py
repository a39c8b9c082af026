"""Answers of a language model to questions on documents, and how good they are in words and to a judge."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
class AnswerScore:
    """The scores of one question; all are None if the model failed, be it for a single window of several."""

    answer: str | None  # None if the model failed
    error: str | None  # why it failed
    marked: bool  # False if the reply did not mark its answer as asked, so that all of it is the answer
    token_f1: float | None  # 0 to 1; None for a multiple-choice question
    exact_match: float | None  # 0 or 1; for a multiple-choice question, 1 if the right option was picked
    correct: bool | None  # True if the judge says YES for any reference, False if NO for all, else None
    judged: tuple[Reply, ...] = ()  # the judge's replies, one for each reference


def answer_score(
    question: Question,
    contexts: Sequence[str],
    length: AnswerLength,
    model: LanguageModel,
    judge: LanguageModel | None,
    asker: Asker,
) -> AnswerScore:
    """Let a language model answer a question, and score the answer; without a judge by its words alone.

    ``contexts`` are the text to answer from, or windows to combine the answers of. One match with a right answer
    is enough. The paper's script sets the judge's temperature to 0 and asks for a sentence or a paragraph,
    depending on the benchmark; "phrase" suits token F1 and exact match against short answers.
    """
    reply = _reply(question, contexts, length, model, asker)
    if reply.text is None:
        return AnswerScore(None, reply.error, True, None, None, None)
    text, marked = answer_in(reply.text)
    references, choices = references_of(question.answers), question.choices
    if choices:
        picked, f1 = choice_in(text, choices), None
        match = float(picked is not None and choices[picked].strip() in references)
    else:
        f1, match = token_f1(text, references), exact_match(text, references)
    if judge is None:
        return AnswerScore(text, None, marked, f1, match, None)
    prompts = (judge_prompt(question.text, reference, text, choices) for reference in references)
    judged = tuple(asker.reply(judge, prompt) for prompt in prompts)  # one for each, as in the paper
    decisions = [None if each.text is None else decision_in(each.text) for each in judged]
    correct = True if True in decisions else None if None in decisions else False
    return AnswerScore(text, None, marked, f1, match, correct, judged)


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


def _reply(
    question: Question, contexts: Sequence[str], length: AnswerLength, model: LanguageModel, asker: Asker
) -> Reply:
    """The reply to a question; those from several windows are joined by one more prompt, if none failed."""
    count, asked = len(contexts), (question.choices, length)
    if count == 1:
        return asker.reply(model, answer_prompt(question.text, contexts[0], *asked))
    parts = []
    for number, window in enumerate(contexts, 1):
        reply = asker.reply(model, window_prompt(question.text, window, f"{number} of {count}", *asked))
        if reply.text is None:
            return Reply(None, f"window {number} of {count}: {reply.error}")
        parts.append(without_thoughts(reply.text))
    return asker.reply(model, aggregation_prompt(question.text, parts, *asked))
