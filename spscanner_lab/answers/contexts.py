"""The texts that answers are given from: the best units, or a document in windows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from spscanner_lab.evaluation.corpus_units import segmenter_for
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results import ScanResult
from spscanner_rag.results.coverage import Spans
from spscanner_rag.results.ranking import rank
from spscanner_rag.scorers import Scorer, score_batch
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import window_ranges

WINDOW_TOKENS = 120_000
"""The paper's windows over a whole document.

Each begins half a window, 60,000 tokens, after the previous one.
"""

WHOLE_DOCUMENT = Setting("whole document", "")
"""Answers from the full context: the direct-answer baseline of appendix E.3."""

PAPER_UNITS = {"sentence": 50, "chunk": 5}
"""How many of the best units the model reads, or ten of other kinds of units."""

Contexts = Callable[[Document, Question], Sequence[str]]
"""Returns the text that a question is answered from, or the windows of a long one."""


def document_windows(
    text: str,
    window_tokens: int = WINDOW_TOKENS,
    count_tokens: CountTokens | str = "o200k_base",
) -> tuple[str, ...]:
    """Return a document as half-overlapping windows of whole sentences.

    A document that fits is one window. The last window may have one token more than
    ``window_tokens``, and a longer sentence is a window by itself. Leave room in the
    model's context for the question and the reply.

    Examples
    --------
    >>> from spscanner_lab.answers.contexts import document_windows
    >>> text = "It rained. It snowed. It thawed."
    >>> document_windows(text, 20, count_tokens=len)
    ('It rained. ', 'It snowed. ', 'It snowed. It thawed.')
    """
    count = resolve_counter(count_tokens)
    units = SentenceSegmenter().segment(text)
    # A sentence includes the white space after it, so that the windows cover the whole
    # document.
    starts = [0]
    starts += [unit.start for unit in units[1:]]
    ends = [*starts[1:], len(text)]
    spans = zip(starts, ends, strict=True)
    lengths = [max(1, count(text[start:end])) for start, end in spans]
    if sum(lengths) <= window_tokens:
        return (text,)
    last_tokens = np.cumsum(lengths, dtype=np.int64) - 1
    windows = []
    for first, last in window_ranges(last_tokens, window_tokens):
        windows.append(text[starts[first] : ends[last]])
    return tuple(windows)


def retriever_contexts(
    setting: Setting,
    scorer: Scorer,
    titles: dict[str, str],
    best: int | None = None,
    words: int | None = None,
) -> Contexts:
    """Give the best units of a document, in the order of the text.

    Parameters
    ----------
    setting : Setting
        The units that the scorer ranks.
    scorer : Scorer
        Ranks them.
    titles : dict
        Is filled with the title of each document before it is scored.
    best : int, optional
        How many units. Default: the paper's 50 sentences or 5 chunks.
    words : int, optional
        Instead of units, give that many words of them, best first, as in EM@l of Dense
        X Retrieval (Chen et al., 2024); of `Propositions`, those of its statements.
    """
    segmenter = segmenter_for(setting.unit, scorer)
    top_k = PAPER_UNITS.get(setting.unit, 10) if best is None else best

    def contexts(document: Document, question: Question) -> tuple[str]:
        titles.clear()
        titles[document.text] = document.title
        text = document.text
        if words is not None and isinstance(scorer, Propositions):
            statements = scorer.best_propositions(question.text, text)
            return (first_words((said.text for said in statements), words),)
        units = segmenter.segment(text)
        (scores,) = score_batch(scorer, [(question.text, text, units)])
        logits = scores.logits
        if words is None:
            result = ScanResult(question.text, text, *Spans.of(units), logits)
            return (result.context(top_k=top_k),)
        ranked_units = (units[number] for number in rank(logits))
        return (first_words(_texts_of(text, ranked_units), words),)

    return contexts


def first_words(texts: Iterable[str], count: int) -> str:
    """Return the first words of texts, joined.

    Examples
    --------
    >>> from spscanner_lab.answers.contexts import first_words
    >>> first_words(["She signed it.", "It rained."], 4)
    'She signed it. It'
    """
    return " ".join(islice(_words_of(texts), count))


def _words_of(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from text.split()


def _texts_of(text: str, units: Iterable[Unit]) -> Iterator[str]:
    for unit in units:
        yield text[unit.start : unit.end]
