"""Answers of a language model: from the best sentences, or from a whole document read in windows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spscanner_rag.lab.answers.prompts import (
    AnswerLength,
    aggregation_prompt,
    answer_in,
    answer_prompt,
    window_prompt,
)
from spscanner_rag.lab.llm.asking import Asker, Reply
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.prompts import without_thoughts
from spscanner_rag.results import ScanResult
from spscanner_rag.scorers import Scorer, score_batch, segment
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import window_ranges

WINDOW_TOKENS = 120_000
"""The paper's windows over a whole document; each begins 60,000 tokens, half a window, after the one before."""


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A question and the texts to answer it from.

    Attributes
    ----------
    question : str
        The question.
    contexts : tuple of str
        A single text is answered from at once. Several are windows of a document: each is answered from, and one
        answer is made from the replies.
    choices : tuple of str
        The options of a multiple-choice question, empty for others.
    """

    question: str
    contexts: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Reply):
    """The answer of a language model.

    Attributes
    ----------
    text : str or None
        The answer; None if the model failed, for a single window of several too.
    error : str or None
        Why the model failed; None if it did not.
    marked : bool
        False if the reply did not mark its answer as asked, so that all of it is the answer.
    """

    marked: bool = True


def retrieved_context(
    scorer: Scorer,
    question: str,
    text: str,
    *,
    units: Sequence[Unit] | None = None,
    top_k: float | None = 50,
    max_tokens: int | None = None,
    count_tokens: CountTokens | str | None = None,
) -> str:
    """The best units of a document as one string, as the paper gives them to the language model.

    Parameters
    ----------
    scorer : Scorer
        The scanner or a baseline.
    question, text : str
        The question and the document.
    units : sequence of Unit, optional
        The units to score. Default: those that the scorer cuts the document into.
    top_k, max_tokens, count_tokens
        As for `ScanResult.context`. The paper's settings are 50 sentences, or 5 chunks.
    """
    if getattr(scorer, "as_context", None) == "proposition":  # its propositions, and not what they stand in
        found: ScanResult = scorer.result(question, text)  # type: ignore[attr-defined]
        count_tokens = "o200k_base" if count_tokens is None else count_tokens
        return found.context(top_k=top_k, max_tokens=max_tokens, count_tokens=count_tokens)
    units = segment(scorer, text) if units is None else units
    (logits,) = score_batch(scorer, [(question, text, units)])
    starts, ends = np.array([(unit.start, unit.end) for unit in units], np.int64).reshape(-1, 2).T
    own = getattr(scorer, "count_tokens", None)
    result = ScanResult(question, text, starts, ends, logits, count_tokens=own)
    return result.context(top_k=top_k, max_tokens=max_tokens, count_tokens=count_tokens)


def document_windows(
    text: str, window_tokens: int = WINDOW_TOKENS, count_tokens: CountTokens | str = "o200k_base"
) -> tuple[str, ...]:
    """A document as half-overlapping windows of whole sentences; a document that fits is one window.

    Parameters
    ----------
    text : str
        The document.
    window_tokens : int, default 120,000
        Tokens of a window, at least 1, counted sentence by sentence. Leave room in the model's context for the
        question and the reply. The last window may have one token more, and a longer sentence is a window of its
        own.
    count_tokens : callable or str, default "o200k_base"
        A function from str to int, or the name of a tiktoken encoding.

    Raises
    ------
    ValueError
        If ``window_tokens`` is below 1.
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


def answer_questions(
    model: LanguageModel,
    requests: Iterable[AnswerRequest],
    asker: Asker | None = None,
    length: AnswerLength = "sentence",
) -> list[Answer]:
    """Answers to questions, in their order.

    Parameters
    ----------
    model : LanguageModel
        From `language_model_of`.
    requests : iterable of AnswerRequest
        Consumed as needed, so that a generator need not hold all documents in memory.
    asker : Asker, optional
        How the model is asked. Default: `Asker()`, which stores nothing.
    length : {"phrase", "sentence", "paragraph"}, default "sentence"
        The form of the answer. The paper asks for a sentence or a paragraph, depending on the benchmark; "phrase"
        suits token F1 and exact match against short answers.

    Raises
    ------
    ValueError
        For a request without a context, or more than 26 choices.
    """
    asker = asker or Asker()
    asked: list[tuple[str, tuple[str, ...], int]] = []  # without the contexts, which may be large

    def first_prompts() -> Iterator[str]:
        for request in requests:
            question, contexts, choices = request.question, request.contexts, request.choices
            if not contexts:
                raise ValueError(f"question {question!r:.80} has no context; expected at least one text")
            asked.append((question, choices, len(contexts)))
            if len(contexts) == 1:
                yield answer_prompt(question, contexts[0], choices, length)
                continue
            for number, window in enumerate(contexts, 1):
                yield window_prompt(question, window, number, len(contexts), choices, length)

    replies = iter(asker.ask(model, first_prompts()))
    parts = [[next(replies) for _ in range(windows)] for _, _, windows in asked]
    whole = [_first_failure(each) if len(each) > 1 else each[0] for each in parts]
    to_join = [i for i, reply in enumerate(whole) if reply is None]
    joining = (
        aggregation_prompt(
            question, [without_thoughts(part.text or "") for part in parts[i]], choices, length
        )
        for i, (question, choices, _) in enumerate(asked)
        if whole[i] is None
    )
    for i, reply in zip(to_join, asker.ask(model, joining), strict=True):
        whole[i] = reply
    return [_answer(reply) for reply in whole if reply is not None]


def _first_failure(replies: Sequence[Reply]) -> Reply | None:
    """The failure of the first window without a reply, which makes an answer impossible; None if all have one."""
    for number, reply in enumerate(replies, 1):
        if reply.error is not None:
            return Reply(None, f"window {number} of {len(replies)}: {reply.error}")
    return None


def _answer(reply: Reply) -> Answer:
    if reply.text is None:
        return Answer(None, reply.error)
    text, marked = answer_in(reply.text)
    return Answer(text, marked=marked)
