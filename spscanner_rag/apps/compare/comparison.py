"""Asks several retrievers one question about documents.

The result has what each picks, and at what cost.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.apps.compare.notebook import Comparison
from spscanner_rag.apps.compare.results import Pick, Retrieval
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.coverage import (
    NEVER,
    Spans,
    evidence_ranks,
    evidence_sentences,
)
from spscanner_rag.scorers import (
    PreparedText,
    Scorer,
    check_query,
    score_prepared_batch,
    words_together,
)
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, check_counter, resolve_counter
from spscanner_rag.text.units import Unit

MOST_PICKS = 500  # the most picks of one retriever, so that a comparison stays readable
MOST_RETRIEVERS = 8  # the most retrievers side by side
WARM_UP = "This sentence is read before the clock starts."
NEXT_QUESTION = "What else is said about this?"
"""What a retriever is asked next, as another question on the same text."""


def compare(
    query: str,
    text: str,
    scorers: Mapping[str, Scorer],
    *,
    top_k: int | Sequence[int] = 10,
    evidence: Iterable[tuple[int, int]] = (),
    count_tokens: CountTokens | str | None = None,
    path: str = "",
    started: Callable[[str], object] = lambda name: None,
) -> Comparison:
    """Ask several retrievers one question about a document, one after the other.

    Parameters
    ----------
    scorers : mapping of str to Scorer
        Retrievers by name: a `Scanner`, baselines, or anything else that scores units.
        At most 8.
    top_k : int or sequence of int, default 10
        Number of units that each retriever picks, 1 to 500, or one number for each
        retriever.
    evidence : iterable of (int, int)
        Character spans of the text that answer the question, end excluded.
    count_tokens : callable or str, optional
        As for `ScanResult.select`, the same for all retrievers. Default: the counter of
        the first scorer that has one, else the bundled checkpoint's.
    path, started : optional
        Where the document was read from, for display; a function called with each
        retriever's name when it begins.

    Raises
    ------
    ValueError
        For an empty query, no or too many retrievers, a ``top_k`` out of range,
        evidence outside the text, or a scorer that does not return one finite number
        for each unit.

    Examples
    --------
    >>> from spscanner_rag.baselines import BM25
    >>> text = "Ships leave at noon. The keeper signed it. Nobody waits."
    >>> scorers = {"bm25": BM25(), "bm25, longer": BM25(b=0.2)}
    >>> comparison = compare("Who signed it?", text, scorers, top_k=1, count_tokens=len)
    >>> for retrieval in comparison.retrievals:
    ...     pick = retrieval.picks[0]
    ...     print(f"{retrieval.name}: {text[pick.start : pick.end]}")
    bm25: The keeper signed it.
    bm25, longer: The keeper signed it.
    """
    (comparison,) = compare_together(
        query,
        [TextFile(path, text)],
        scorers,
        top_k=top_k,
        evidence=evidence,
        count_tokens=count_tokens,
        started=started,
    )
    return comparison


def compare_together(
    query: str,
    documents: Sequence[TextFile],
    scorers: Mapping[str, Scorer],
    *,
    top_k: int | Sequence[int] = 10,
    evidence: Iterable[tuple[int, int]] = (),
    count_tokens: CountTokens | str | None = None,
    started: Callable[[str], object] = lambda name: None,
) -> list[Comparison]:
    """Compare as `compare`, but on several documents.

    Each retriever ranks them together.

    ``top_k`` counts the picks from all documents together, and ``started`` is called
    for each retriever and document. ``evidence`` needs a single document. Several
    documents are one collection.
    """
    check_query(query)
    numbers = check_top_k(top_k, len(scorers))
    spans = check_evidence_spans(evidence, documents)
    check_counter(count_tokens)
    counted_by, counter = _counter(scorers, count_tokens)
    answers_by_name: dict[str, list[_Answer]] = {}
    for (name, scorer), number in zip(scorers.items(), numbers, strict=True):
        begin = partial(started, name)
        answers_by_name[name] = _ask(query, documents, scorer, number, begin)
    comparisons: list[Comparison] = []
    for number, document in enumerate(documents):
        answers = {name: answers_by_name[name][number] for name in scorers}
        comparisons.append(
            _comparison(query, document, answers, spans, counted_by, counter)
        )
    return comparisons


def described(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Describe comparisons for JSON: every pick of every retriever with its place."""
    return {
        "query": comparisons[0].query,
        "counted_by": comparisons[0].counted_by,
        "documents": [_described_document(comparison) for comparison in comparisons],
    }


def _described_document(comparison: Comparison) -> dict[str, Any]:
    document = comparison.document
    sentences: list[dict[str, Any]] = []
    for start, end in comparison.evidence_sentences:
        sentences.append(_quoted(document, start, end))
    retrievers: list[dict[str, Any]] = []
    for retrieval in comparison.retrievals:
        retrievers.append(_described_retrieval(document, retrieval))
    return {
        "path": document.path,
        "characters": len(comparison.text),
        "evidence": comparison.evidence,
        "evidence_sentences": sentences,
        "retrievers": retrievers,
    }


def _described_retrieval(document: TextFile, retrieval: Retrieval) -> dict[str, Any]:
    picks: list[dict[str, Any]] = []
    for pick in retrieval.picks:
        facts = {
            "rank": pick.rank,
            "score": pick.score,
            "tokens": pick.tokens,
            "only": pick.only,
        }
        picks.append(facts | _quoted(document, pick.start, pick.end))
    return {
        "name": retrieval.name,
        "units": retrieval.units,
        "seconds": retrieval.seconds,
        "seconds_again": retrieval.seconds_again,
        "tokens": retrieval.tokens,
        "only": retrieval.only,
        "found": retrieval.found,
        "picks": picks,
    }


def _quoted(document: TextFile, start: int, end: int) -> dict[str, Any]:
    return {**document.place(start, end), "text": document.shown(start, end)}


def check_top_k(top_k: int | Sequence[int], retrievers: int) -> list[int]:
    """Return the number of picks of every retriever.

    ``ValueError`` for bad numbers, or no or too many retrievers.
    """
    if not 1 <= retrievers <= MOST_RETRIEVERS:
        raise ValueError(
            f"got {retrievers} retrievers to compare; expected 1 to {MOST_RETRIEVERS}"
        )
    numbers = list(top_k) if isinstance(top_k, Sequence) else [top_k] * retrievers
    if len(numbers) != retrievers:
        raise ValueError(
            f"top_k: got {len(numbers)} numbers for {retrievers} retrievers; expected"
            " one, or one for each"
        )
    for number in numbers:
        if type(number) is not int or not 1 <= number <= MOST_PICKS:
            raise ValueError(
                f"top_k: got {number!r}; expected a whole number from 1 to {MOST_PICKS}"
            )
    return numbers


def check_evidence_spans(
    evidence: Iterable[tuple[int, int]], documents: Sequence[TextFile]
) -> tuple[tuple[int, int], ...]:
    """Sort spans and merge those that touch.

    ``ValueError`` for empty, blank or outside ones, or several texts.
    """
    spans = sorted(evidence)
    text = documents[0].text
    if spans and len(documents) > 1:
        raise ValueError(
            f"evidence: got {len(documents)} documents; expected one, whose characters"
            " are counted"
        )
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"evidence: got {start}-{end}; expected START-END with 0 <= START < END"
                f" <= {len(text)}, the characters of the document"
            )
        if text[start:end].isspace():
            raise ValueError(
                f"evidence: got {start}-{end}, which is white space; expected words"
                " that answer"
            )
        if merged and start <= merged[-1][1]:
            previous_start, previous_end = merged.pop()
            start = previous_start
            end = max(end, previous_end)
        merged.append((start, end))
    return tuple(merged)


class _Answer(NamedTuple):
    """One retriever's picks in one document.

    It has the seconds of the first question and of another one.
    """

    best: ScannedDocument
    seconds: float
    seconds_again: float


def _ask(
    query: str,
    documents: Sequence[TextFile],
    scorer: Scorer,
    number: int,
    started: Callable[[], object],
) -> list[_Answer]:
    """Ask one retriever a question about each document.

    Its picks are the best of all documents.
    """
    collection = None
    if len(documents) > 1:
        units_of_all = (
            scorer.units_of(document.text, document.blocks) for document in documents
        )
        collection = words_together(scorer, units_of_all)
    # so that loading and compiling at first use is not timed
    _timed(scorer, query, _prepared(scorer, TextFile("", WARM_UP)), None)
    results: list[ScanResult] = []
    all_seconds: list[float] = []
    all_seconds_again: list[float] = []
    for document in documents:
        started()
        began = time.perf_counter()
        prepared = _prepared(scorer, document)
        preparing = time.perf_counter() - began
        logits, scoring = _timed(scorer, query, prepared, collection)
        seconds = preparing + scoring
        seconds_again = seconds
        if scorer.keeps_texts:
            _, seconds_again = _timed(scorer, NEXT_QUESTION, prepared, collection)
        spans = Spans.of(prepared.units)
        results.append(ScanResult(query, document.text, *spans, logits))
        all_seconds.append(seconds)
        all_seconds_again.append(seconds_again)
    best = select_together(documents, results, Selection(top_k=number, order="score"))
    return list(map(_Answer, best, all_seconds, all_seconds_again))


def _prepared(scorer: Scorer, document: TextFile) -> PreparedText:
    """A document as the scorer keeps it between questions."""
    units = scorer.units_of(document.text, document.blocks)
    return scorer.prepare(document.text, units=units)


def _timed(
    scorer: Scorer,
    query: str,
    prepared: PreparedText,
    collection: CollectionIndex | None,
) -> tuple[NDArray[np.float32], float]:
    """The logits of a prepared document, and the seconds for scoring it."""
    began = time.perf_counter()
    (scores,) = score_prepared_batch(scorer, query, [prepared], collection=collection)
    return scores.logits, time.perf_counter() - began


def _comparison(
    query: str,
    document: TextFile,
    answers: Mapping[str, _Answer],
    evidence: tuple[tuple[int, int], ...],
    counted_by: str,
    counter: CountTokens,
) -> Comparison:
    """Compare the answers of all retrievers, by name, about one document."""
    sentences = _evidence_sentences(document, evidence)
    spans_of_picks = [_spans_of_picks(answer) for answer in answers.values()]
    retrievals: list[Retrieval] = []
    for number, (name, answer) in enumerate(answers.items()):
        picks = _picks_of(answer, _only(number, spans_of_picks), counter)
        by_rank = -np.arange(len(picks), dtype=np.float64)
        ranks = evidence_ranks(spans_of_picks[number], by_rank, sentences)
        retrievals.append(
            Retrieval(
                name,
                units=len(answer.best.result.logits),
                picks=picks,
                seconds=answer.seconds,
                found=tuple((ranks < NEVER).tolist()),
                seconds_again=answer.seconds_again,
            )
        )
    sentence_spans = zip(
        sentences.starts.tolist(), sentences.ends.tolist(), strict=True
    )
    return Comparison(
        query,
        document,
        tuple(retrievals),
        evidence,
        tuple(sentence_spans),
        counted_by,
    )


def _evidence_sentences(
    document: TextFile, evidence: tuple[tuple[int, int], ...]
) -> Spans:
    """The sentences that overlap the evidence.

    They are the same for all retrievers, whatever their units.
    """
    units: list[Unit] = []
    if evidence:
        segment = SentenceSegmenter().segment
        units = segment_blocks(document.text, document.blocks, segment)
    return evidence_sentences(Spans.of(units), evidence)


def _spans_of_picks(answer: _Answer) -> Spans:
    return Spans.of([Unit(pick.start, pick.end, "") for pick in answer.best.picks])


def _picks_of(
    answer: _Answer, alone: Sequence[bool], counter: CountTokens
) -> tuple[Pick, ...]:
    """The picks of a retriever, ``alone`` telling which no other picked."""
    picks: list[Pick] = []
    for passage, is_alone in zip(answer.best.picks, alone, strict=True):
        picks.append(
            Pick(
                passage.start,
                passage.end,
                passage.score,
                rank=answer.best.ranks[passage.start],
                tokens=counter(passage.text),
                only=is_alone,
            )
        )
    return tuple(picks)


def _counter(
    scorers: Mapping[str, Scorer], count_tokens: CountTokens | str | None
) -> tuple[str, CountTokens]:
    if count_tokens is not None:
        name = "the counter given"
        if isinstance(count_tokens, str):
            name = count_tokens
        return name, resolve_counter(count_tokens)
    for name, scorer in scorers.items():
        if scorer.count_tokens is not None:
            return name, resolve_counter(scorer.count_tokens)
    from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter

    return "the bundled checkpoint", bundled_token_counter()


def _only(number: int, spans_of_picks: Sequence[Spans]) -> list[bool]:
    """For each pick of a retriever, whether no other retriever picked it."""
    mine = spans_of_picks[number]
    my_lengths = mine.ends - mine.starts
    shared = np.zeros(len(mine.starts), bool)
    for other in (*spans_of_picks[:number], *spans_of_picks[number + 1 :]):
        first = np.maximum(mine.starts[:, None], other.starts)
        # (mine, other) characters
        common = np.minimum(mine.ends[:, None], other.ends) - first
        shorter = np.minimum(my_lengths[:, None], other.ends - other.starts)
        shared |= (2 * common >= shorter).any(axis=1)
    alone: list[bool] = (~shared & (len(spans_of_picks) > 1)).tolist()
    return alone
