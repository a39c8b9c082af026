"""Corpora: documents that are asked a question together, cut into units.

A single document is a corpus of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evidence.questions import Asked, Document, Question, sample_questions
from spscanner_rag.baselines.base import segmenter_of
from spscanner_rag.baselines.combined import segmenter_in
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.coverage import Spans
from spscanner_rag.results.selection import best_first, document_score
from spscanner_rag.scorers import Scorer, score_batch
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, Unit


class Pool(NamedTuple):
    """The units of several documents, ranked together."""

    spans: Spans  # in the corpus, with its documents laid end to end
    tokens: NDArray[np.int64]  # (units,)


def segmenter_for(unit: str, scorer: Scorer | None = None) -> Segmenter:
    """The segmenter for a scorer.

    For "sentence", that of the scanner in it, since published scanners differ.
    """
    own = segmenter_in(scorer) if unit == "sentence" else None
    return segmenter_of(unit) if own is None else own  # type: ignore[arg-type]  # checks the unit


class CorpusUnits:
    """The documents of a corpus by number, each cut into units when it is first needed."""

    def __init__(self, documents: Sequence[Document], segmenter: Segmenter) -> None:
        self.documents, self._segmenter = documents, segmenter
        self.every = range(len(documents))
        self._starts = np.cumsum([0, *(len(document.text) for document in documents)])
        self._cut: dict[int, Sequence[Unit]] = {}
        self._pools: dict[int, Pool] = {}

    def units(self, number: int) -> Sequence[Unit]:
        """The units of one document."""
        if number not in self._cut:
            self._cut[number] = self._segmenter.segment(self.documents[number].text)
        return self._cut[number]

    def scores(
        self,
        scorer: Scorer,
        queries: Sequence[str],
        numbers: Sequence[int],
        collection: Sequence[int] | None = None,
        answers: list[float | None] | None = None,
    ) -> list[list[NDArray[np.float32]]]:
        """Logits of the units of these documents, (units,) each, for each query.

        ``answers`` as in `score_batch`.

        ``collection`` has the documents whose word counts the scorer gets; None if each
        document is asked alone.
        """
        texts = [
            (self.documents[number].text, self.units(number)) for number in numbers
        ]
        requests = [(query, *read) for query in queries for read in texts]
        index = None
        if collection is not None and getattr(scorer, "uses_collection", False):
            index = self.index(collection)
        logits = iter(score_batch(scorer, requests, collection=index, answers=answers))
        return [[next(logits) for _ in numbers] for _ in queries]

    def index(self, numbers: Sequence[int]) -> CollectionIndex:
        """The words of these documents.

        A document's key is its place among ``numbers``, such as "0".
        """
        if numbers == self.every:
            return self._whole_index
        return CollectionIndex.of(
            [unit.model_text for unit in self.units(number)] for number in numbers
        )

    @cached_property
    def _whole_index(self) -> CollectionIndex:
        return self.index(list(self.every))

    def pool(self, numbers: Sequence[int], count_tokens: CountTokens) -> Pool:
        """The units of these documents together.

        Always pass the same ``count_tokens``, since counts are kept.
        """
        for number in set(numbers) - self._pools.keys():
            text, units = self.documents[number].text, self.units(number)
            tokens = np.array(
                [count_tokens(text[unit.start : unit.end]) for unit in units], np.int64
            )
            self._pools[number] = Pool(self.place(number, Spans.of(units)), tokens)
        pools = [
            Pool(Spans.of([]), np.zeros(0, np.int64)),
            *(self._pools[number] for number in numbers),
        ]
        starts, ends = map(
            np.concatenate, zip(*(pool.spans for pool in pools), strict=True)
        )
        return Pool(
            Spans(starts, ends), np.concatenate([pool.tokens for pool in pools])
        )

    def place(self, number: int, spans: Spans) -> Spans:
        """Move spans of one document to its place among the documents laid end to end."""
        start = self._starts[number]
        return Spans(spans.starts + start, spans.ends + start)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents of a source, and the questions asked of them."""

    source: str
    documents: Sequence[
        Document
    ]  # their order breaks ties between documents of equal score
    asked: Sequence[Asked] = ()  # questions with the right document of each
    left_out: int = (
        0  # questions that another document has too, or whose evidence is not read
    )
    _kept: dict[object, CorpusUnits] = field(
        default_factory=dict, init=False, repr=False
    )

    def units(self, unit: str, scorer: Scorer | None = None) -> CorpusUnits:
        """The documents as `segmenter_for` cuts them; kept for the next setting."""
        segmenter = segmenter_for(unit, scorer)
        key = unit if segmenter.name == unit else segmenter
        if key not in self._kept:
            self._kept[key] = CorpusUnits(self.documents, segmenter)
        return self._kept[key]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document by its id."""
        return {
            document.doc_id: number for number, document in enumerate(self.documents)
        }


def corpora_of(
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    least: int = 2,
    characters: int | None = None,
) -> list[Corpus]:
    """Return the corpus of each source that has a question to ask, in alphabetical order.

    A question is asked if no other document of its source has a question in the same
    words, answerable or not: "Who signed the contract?", asked of every contract, has
    no right document. ``ValueError`` if a source has fewer documents than ``least`` or
    two with the same id, or if no source has a question to ask.
    """
    sources: dict[str, dict[str, Document]] = {}
    for document in documents:
        own = sources.setdefault(document.source, {})
        if document.doc_id in own:
            raise ValueError(
                f"source {document.source!r} has two documents with the id"
                f" {document.doc_id!r:.80}; expected one: give each file once"
            )
        own[document.doc_id] = document
    corpora = []
    for source, own in sorted(sources.items()):
        if len(own) < least:
            raise ValueError(
                f"source {source!r} has {len(own)} document{'s' * (len(own) != 1)};"
                f" expected at least {least}: give more of its documents"
                + (", or a smaller --among" if least > 2 else "")
            )
        corpora.append(
            _corpus(
                source,
                [own[name] for name in sorted(own)],
                per_source,
                seed,
                characters,
            )
        )
    if not any(corpus.asked for corpus in corpora):
        raise ValueError(
            "the data have no answerable question with evidence that only one document"
            " of its source answers; expected at least one"
            f" ({sum(corpus.left_out for corpus in corpora)} have the same words as"
            " another document's question, or evidence that is cut off)"
        )
    return [corpus for corpus in corpora if corpus.asked]


def _corpus(
    source: str,
    documents: list[Document],
    per_source: int | None,
    seed: int,
    characters: int | None,
) -> Corpus:
    askers: dict[str, set[str]] = {}
    for document in documents:
        for question in document.questions:
            askers.setdefault(_words(question), set()).add(document.doc_id)
    own = (
        tuple(q for q in d.questions if len(askers[_words(q)]) == 1) for d in documents
    )
    unique = (
        replace(document, questions=kept)
        for document, kept in zip(documents, own, strict=True)
    )
    read = list(
        unique
        if characters is None
        else (shortened(document, characters) for document in unique)
    )
    asked = sample_questions(read, per_source, seed).get(source, [])
    return Corpus(source, read, asked, _answerable(documents) - _answerable(read))


def _words(question: Question) -> str:
    return " ".join(question.text.split()).casefold()


def _answerable(documents: Sequence[Document]) -> int:
    return sum(
        bool(q.evidence) and q.answerable
        for document in documents
        for q in document.questions
    )


def shortened(document: Document, characters: int) -> Document:
    """Return the (first) stretch of whole sentences, of at most ``characters``, with the most questions.

    It keeps the questions whose evidence lies within it. A document that is short
    enough is returned unchanged.
    """
    if len(document.text) <= characters or not document.text.strip():
        return document
    sentences = Spans.of(SentenceSegmenter().segment(document.text))
    start, stop = _stretch(sentences, document.questions, characters)
    questions = tuple(
        replace(
            question,
            evidence=tuple(
                (first - start, end - start) for first, end in question.evidence
            ),
        )
        for question in document.questions
        if all(start <= first and end <= stop for first, end in question.evidence)
    )
    return replace(document, text=document.text[start:stop], questions=questions)


def _stretch(
    sentences: Spans, questions: Sequence[Question], characters: int
) -> tuple[int, int]:
    starts, ends = sentences
    last = np.searchsorted(ends, starts + characters, side="right") - 1
    stops = ends[
        np.maximum(last, np.arange(len(starts)))
    ]  # (sentences,): where a stretch from each ends
    held = np.zeros(len(starts), np.int64)
    for question in questions:
        if question.evidence:
            first, end = (
                min(question.evidence)[0],
                max(end for _, end in question.evidence),
            )
            held += (starts <= first) & (end <= stops)
    best = int(np.argmax(held))
    return int(starts[best]), int(stops[best])


def asked_of(
    corpus: Corpus, query: str, right: int, among: int | None
) -> Sequence[int]:
    """The numbers of the documents asked: all, or ``among`` of them, the ``right`` one and the nearest by BM25.

    If fewer documents share a word with the question, others follow in the order of the
    corpus.
    """
    documents = corpus.units("document")
    if among is None:
        return documents.every
    near = documents.index(documents.every).best_texts(query, among)
    others = dict.fromkeys([*(int(key) for key, _ in near), *documents.every])
    others.pop(right)
    return sorted([right, *list(others)[: among - 1]])


def read_of(
    corpus: Corpus,
    query: str,
    asked: Sequence[int],
    first_stage: Scorer | str | None,
    most: int,
) -> Sequence[int]:
    """The documents asked that are read, at most ``most`` after a first stage, in the order of the corpus.

    The first stage is None to read all of them, "bm25" for the index of the framework
    retrievers (sentences and their surroundings), or a retriever, which ranks documents
    by their best chunk, as in a vector store. BM25 leaves out documents that share no
    word with the question, however few are left.
    """
    if first_stage is None or len(asked) <= most:
        return asked
    if isinstance(first_stage, str):
        found = corpus.units("sentence").index(asked).best_texts(query, most)
        places = [int(key) for key, _ in found]
    else:
        (scores,) = corpus.units("chunk").scores(first_stage, [query], asked, asked)
        ranked = best_first([document_score(own) for own in scores])
        places = [place for place, _ in ranked[:most]]
    return sorted(asked[place] for place in places)
