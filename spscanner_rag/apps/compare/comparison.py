"""Asks several retrievers one question on a document: what each picks, and at what cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spscanner_rag.apps.compare.arguments import check_evidence_spans, check_top_k
from spscanner_rag.apps.compare.asking import Answer, ask
from spscanner_rag.apps.compare.page import framed, render_comparisons
from spscanner_rag.apps.compare.retrievals import Pick, Retrieval, Retrievals
from spscanner_rag.files.documents import TextFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.coverage import NEVER, Spans, evidence_ranks, evidence_sentences
from spscanner_rag.scorers import Scorer, check_query
from spscanner_rag.text.blocks import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, check_counter, resolve_counter


@dataclass(frozen=True, repr=False)
class Comparison(Retrievals):
    """Several retrievers on one question and document; a notebook shows it as a page.

    Attributes
    ----------
    query, text : str
        The question and the document.
    retrievals : tuple of Retrieval
        One for each retriever, in the order given.
    evidence : tuple of (int, int)
        Character spans of the document that answer the question, ascending and disjoint; empty if not known.
    evidence_sentences : tuple of (int, int)
        Spans of the sentences that overlap the evidence.
    counted_by : str
        Name of the scorer or encoding whose tokens are counted.
    path : str
        Where the document was read from; empty for a text that was not read from a file.
    """

    def __repr__(self) -> str:
        names = ", ".join(retrieval.name for retrieval in self.retrievals)
        return f"Comparison({self.query!r:.60}, characters={len(self.text)}, retrievers: {names})"

    @cached_property
    def page(self) -> str:
        """The comparison as one self-contained HTML page."""
        return render_comparisons([self])

    def _repr_html_(self) -> str:
        return framed(self.page)


def compare(
    query: str,
    text: str,
    scorers: Mapping[str, Scorer],
    *,
    top_k: int | Sequence[int] = 10,
    evidence: Iterable[tuple[int, int]] = (),
    count_tokens: CountTokens | str | None = None,
    collections: Mapping[str, CollectionIndex | None] | None = None,
    path: str = "",
    started: Callable[[str], None] | None = None,
) -> Comparison:
    """Ask several retrievers one question on a document, one after the other.

    Parameters
    ----------
    query : str
        The question.
    text : str
        The document.
    scorers : mapping of str to Scorer
        Retrievers by name: a `Scanner`, baselines, or anything else that scores units. At most 8.
    top_k : int or sequence of int, default 10
        Number of units that each picks, 1 to 500; or one number for each retriever.
    evidence : iterable of (int, int)
        Character spans of the text that answer the question, end excluded.
    count_tokens : callable or str, optional
        As for `ScanResult.select`, the same for all retrievers. Default: the tokens of the first scorer that
        counts them, else of the bundled checkpoint.
    collections : mapping of str to CollectionIndex, optional
        For each retriever by name, the words of all documents that the question is asked of, as
        `scorers.words_together` counts them. Default: this document is asked alone.
    path : str, optional
        Where the document was read from; only shown.
    started : callable, optional
        Called with the name of each retriever when its turn comes.

    Raises
    ------
    ValueError
        For an empty query, no retriever or too many, a ``top_k`` out of range, evidence outside the text, or
        a scorer that does not return one finite number for each unit.
    """
    document = TextFile(path, text)
    (found,) = compare_together(
        query,
        [document],
        scorers,
        top_k=top_k,
        evidence=evidence,
        count_tokens=count_tokens,
        collections=collections,
        started=started,
    )
    return found


def compare_together(
    query: str,
    documents: Sequence[TextFile],
    scorers: Mapping[str, Scorer],
    *,
    top_k: int | Sequence[int] = 10,
    evidence: Iterable[tuple[int, int]] = (),
    count_tokens: CountTokens | str | None = None,
    collections: Mapping[str, CollectionIndex | None] | None = None,
    started: Callable[[str], None] | None = None,
) -> list[Comparison]:
    """Ask several retrievers one question on several documents, with one ranking of each over all of them.

    Parameters
    ----------
    documents : sequence of TextFile
        As `spscanner_rag.files.read` returns them, at least one.
    query, scorers, count_tokens, started
        As for `compare`; ``started`` is called for each retriever and document.
    top_k : int or sequence of int, default 10
        Number of units that each retriever picks from all documents together.
    evidence : iterable of (int, int)
        As for `compare`; for one document only.
    collections : mapping of str to CollectionIndex, optional
        As for `compare`. Default: several documents are one collection.

    Returns
    -------
    list of Comparison
        One for each document. The ranks of its picks count those of all documents.

    Raises
    ------
    ValueError
        As `compare`.
    """
    check_query(query)
    numbers = check_top_k(top_k, len(scorers))
    evidence = list(evidence)
    if evidence and len(documents) > 1:
        raise ValueError(
            f"evidence: got {len(documents)} documents; expected one, whose characters are counted"
        )
    spans = check_evidence_spans(evidence, documents[0].text)
    check_counter(count_tokens)
    counted_by, counter = _counter(scorers, count_tokens)
    answers = [
        ask(query, documents, name, scorer, number, (collections or {}).get(name), started)
        for (name, scorer), number in zip(scorers.items(), numbers, strict=True)
    ]
    return [
        _comparison(query, document, [answer[i] for answer in answers], spans, counted_by, counter)
        for i, document in enumerate(documents)
    ]


def _comparison(
    query: str,
    document: TextFile,
    answers: Sequence[Answer],
    evidence: tuple[tuple[int, int], ...],
    counted_by: str,
    counter: CountTokens,
) -> Comparison:
    """The answers of all retrievers on one document."""
    # The evidence sentences are the same for every retriever, whatever its units are.
    cut = segment_blocks(document.text, document.blocks, SentenceSegmenter().segment) if evidence else []
    sentences = evidence_sentences(Spans.of(cut), evidence)
    chosen = [answer.chosen for answer in answers]
    retrievals = []
    for i, answer in enumerate(answers):
        picks = tuple(
            Pick(each.start, each.end, each.score, answer.best.ranks[each.start], counter(each.text), alone)
            for each, alone in zip(answer.best.picks, _only(i, chosen), strict=True)
        )
        by_rank = -np.arange(len(picks), dtype=np.float64)
        found = tuple((evidence_ranks(chosen[i], by_rank, sentences) < NEVER).tolist())
        retrievals.append(
            Retrieval(answer.name, answer.units, picks, answer.seconds, found, answer.seconds_again)
        )
    spans = tuple(zip(sentences.starts.tolist(), sentences.ends.tolist(), strict=True))
    return Comparison(
        query, document.text, tuple(retrievals), evidence, spans, counted_by, document.path, document
    )


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
    from spscanner_rag.scan.prepare import bundled_token_counter

    return "the bundled checkpoint", bundled_token_counter()


def _only(number: int, chosen: Sequence[Spans]) -> list[bool]:
    """For each pick of a retriever, whether no other retriever picked it."""
    mine = chosen[number]
    shared = np.zeros(len(mine.starts), bool)
    for other in (*chosen[:number], *chosen[number + 1 :]):
        first = np.maximum(mine.starts[:, None], other.starts)
        common = np.minimum(mine.ends[:, None], other.ends) - first  # (mine, other) characters
        shorter = np.minimum((mine.ends - mine.starts)[:, None], other.ends - other.starts)
        shared |= (2 * common >= shorter).any(axis=1)
    alone: list[bool] = (~shared & (len(chosen) > 1)).tolist()
    return alone
