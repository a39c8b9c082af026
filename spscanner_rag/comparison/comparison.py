"""Several retrievers on one question and document, side by side: what each picks, and at what cost."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.comparison.arguments import check_evidence_spans, check_top_k
from spscanner_rag.evidence.coverage import NEVER, Spans, evidence_ranks, evidence_sentences
from spscanner_rag.results import ScanResult
from spscanner_rag.scorers import Scorer, check_query, score_batch, segment
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, check_counter, resolve_counter


@dataclass(frozen=True, slots=True)
class Pick:
    """One unit that a retriever picked.

    Attributes
    ----------
    start, end
        Its span in the document, in characters.
    score
        From 0 to 1; the scores of two retrievers cannot be compared.
    rank
        1 is the retriever's best.
    tokens
        Of the unit by itself.
    only
        No other retriever picked it: none of their picks shares half of the shorter of the two.
    """

    start: int
    end: int
    score: float
    rank: int
    tokens: int
    only: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one retriever did.

    Attributes
    ----------
    name
        Of the retriever, as the caller gave it.
    units
        Pieces that it cut the document into and scored.
    picks
        The best of them, best first.
    seconds
        That cutting and scoring took; loading a model is not in it.
    found
        Of each evidence sentence, whether at least half of it lies inside the picks.
    """

    name: str
    units: int
    picks: tuple[Pick, ...]
    seconds: float
    found: tuple[bool, ...]

    @property
    def tokens(self) -> int:
        """Of all picks together."""
        return sum(pick.tokens for pick in self.picks)

    @property
    def only(self) -> int:
        """Picks that no other retriever has."""
        return sum(pick.only for pick in self.picks)


@dataclass(frozen=True)
class Comparison:
    """Retrievers held against each other on one question and document; a notebook shows it as a page.

    Attributes
    ----------
    query, text
        The question and the document.
    retrievals
        One for each retriever, in the order given.
    evidence
        Character spans of the document that answer the question, ascending and disjoint; empty if not known.
    evidence_sentences
        Spans of the sentences that overlap the evidence.
    counted_by
        Whose tokens are counted.
    path
        Where the document was read from; empty if nowhere.
    """

    query: str
    text: str
    retrievals: tuple[Retrieval, ...]
    evidence: tuple[tuple[int, int], ...]
    evidence_sentences: tuple[tuple[int, int], ...]
    counted_by: str
    path: str = ""

    def __repr__(self) -> str:
        names = ", ".join(retrieval.name for retrieval in self.retrievals)
        return f"Comparison({self.query!r:.60}, characters={len(self.text)}, retrievers: {names})"

    @cached_property
    def page(self) -> str:
        """The comparison as one self-contained HTML page."""
        from spscanner_rag.comparison.page import render_comparisons

        return render_comparisons([self])

    def _repr_html_(self) -> str:
        from spscanner_rag.comparison.page import framed

        return framed(self.page)


def compare(
    query: str,
    text: str,
    scorers: Mapping[str, Scorer],
    *,
    top_k: int | Sequence[int] = 10,
    evidence: Iterable[tuple[int, int]] = (),
    count_tokens: CountTokens | str | None = None,
    path: str = "",
    started: Callable[[str], None] | None = None,
) -> Comparison:
    """Ask several retrievers one question of a document, one after the other.

    Parameters
    ----------
    query : str
        The question.
    text : str
        The document.
    scorers : mapping of str to Scorer
        Retrievers by the names to show: a `Scanner`, baselines, or anything else that scores units. At most 8.
    top_k : int or sequence of int, default 10
        Units that each may pick, 1 to 500; or one number for each retriever.
    evidence : iterable of (int, int)
        Character spans of the text that answer the question, end excluded.
    count_tokens : callable or str, optional
        As for `ScanResult.select`. Default: the tokens of the first scorer that counts them, else of the
        bundled checkpoint. One counter serves all retrievers.
    path : str, optional
        Where the document comes from, to show.
    started : callable, optional
        Called with the name of each retriever when its turn comes.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        For an empty query, no retriever or too many, a ``top_k`` out of range, evidence outside the text, or
        a scorer that does not return one finite number for each unit.
    """
    check_query(query)
    numbers = check_top_k(top_k, len(scorers))
    spans = check_evidence_spans(evidence, text)
    check_counter(count_tokens)
    counted_by, counter = _counter(scorers, count_tokens)
    sentences = _evidence_sentences(text, spans)
    results, seconds = [], []
    for name, scorer in scorers.items():
        if started is not None:
            started(name)
        result, spent = _scan(query, text, scorer)
        results.append(result)
        seconds.append(spent)
    chosen = [_best(result, number) for result, number in zip(results, numbers, strict=True)]
    retrievals = tuple(
        Retrieval(
            name,
            len(results[i].logits),
            _picks(results[i], chosen[i], _only(i, chosen), counter),
            seconds[i],
            tuple((evidence_ranks(chosen[i], _falling(chosen[i]), sentences) < NEVER).tolist()),
        )
        for i, name in enumerate(scorers)
    )
    evidence_spans = tuple(zip(sentences.starts.tolist(), sentences.ends.tolist(), strict=True))
    return Comparison(query, text, retrievals, spans, evidence_spans, counted_by, path)


def _evidence_sentences(text: str, evidence: tuple[tuple[int, int], ...]) -> Spans:
    # The same sentences for every retriever, whatever units it has.
    return evidence_sentences(Spans.of(SentenceSegmenter().segment(text) if evidence else []), evidence)


def _counter(
    scorers: Mapping[str, Scorer], count_tokens: CountTokens | str | None
) -> tuple[str, CountTokens]:
    if count_tokens is not None:
        name = count_tokens if isinstance(count_tokens, str) else "the counter given"
        return name, resolve_counter(count_tokens)
    for name, scorer in scorers.items():
        own = getattr(scorer, "count_tokens", None)
        if callable(own):
            return name, resolve_counter(own)
    from spscanner_rag.scanner import bundled_token_counter

    return "the bundled checkpoint", bundled_token_counter()


def _scan(query: str, text: str, scorer: Scorer) -> tuple[ScanResult, float]:
    """All units with their scores, and the seconds that took."""
    began = time.perf_counter()
    units = segment(scorer, text)
    logits = next(score_batch(scorer, [(query, text, units)]))
    spent = time.perf_counter() - began
    return ScanResult(query, text, *Spans.of(units), logits), spent


def _best(result: ScanResult, number: int) -> Spans:
    """Spans of the best units, best first."""
    passages = result.select(top_k=number, order="score")
    starts = np.array([passage.start for passage in passages], np.int64)
    return Spans(starts, np.array([passage.end for passage in passages], np.int64))


def _falling(spans: Spans) -> NDArray[np.float64]:
    return -np.arange(len(spans.starts), dtype=np.float64)


def _only(number: int, chosen: Sequence[Spans]) -> list[bool]:
    """Of each pick of a retriever, whether no other has it."""
    mine = chosen[number]
    shared = np.zeros(len(mine.starts), bool)
    for other in (*chosen[:number], *chosen[number + 1 :]):
        first = np.maximum(mine.starts[:, None], other.starts)
        common = np.minimum(mine.ends[:, None], other.ends) - first  # (mine, other) characters
        shorter = np.minimum((mine.ends - mine.starts)[:, None], other.ends - other.starts)
        shared |= (2 * common >= shorter).any(axis=1)
    alone: list[bool] = (~shared & (len(chosen) > 1)).tolist()
    return alone


def _picks(result: ScanResult, best: Spans, only: list[bool], count: CountTokens) -> tuple[Pick, ...]:
    places = np.searchsorted(result.starts, best.starts)
    spans = zip(best.starts.tolist(), best.ends.tolist(), result.scores[places].tolist(), only, strict=True)
    return tuple(
        Pick(start, end, score, rank, count(result.text[start:end]), alone)
        for rank, (start, end, score, alone) in enumerate(spans, start=1)
    )
