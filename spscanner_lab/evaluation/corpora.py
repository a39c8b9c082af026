"""Corpora: documents that are asked a question together.

A single document is a corpus of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat

from spscanner_lab.evaluation.corpus_units import CorpusUnits, segmenter_for
from spscanner_lab.evaluation.shortening import shortened
from spscanner_lab.evidence.questions import Document, Question, QuestionOnDocument
from spscanner_lab.evidence.sampling import by_document, sample_questions
from spscanner_rag.scorers import Scorer


@dataclass(frozen=True, eq=False)
class SourceCorpus:
    """Documents of a source, and the questions asked of them.

    The order of the documents breaks ties between documents of equal score.
    """

    source: str
    documents: Sequence[Document]
    questions: Sequence[QuestionOnDocument] = ()  # with the right document of each
    # questions that another document has too, or whose evidence is not read
    left_out: int = 0
    _units_by_segmenter: dict[object, CorpusUnits] = field(
        default_factory=dict, init=False, repr=False
    )

    def units(self, unit: str, scorer: Scorer | None = None) -> CorpusUnits:
        """The documents as `segmenter_for` cuts them, once for all settings."""
        segmenter = segmenter_for(unit, scorer)
        key = unit if segmenter.name == unit else segmenter
        if key not in self._units_by_segmenter:
            self._units_by_segmenter[key] = CorpusUnits(self.documents, segmenter)
        return self._units_by_segmenter[key]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document by its id."""
        numbers = {}
        for number, document in enumerate(self.documents):
            numbers[document.doc_id] = number
        return numbers


def documents_alone(
    questions: Mapping[str, Sequence[QuestionOnDocument]],
) -> Iterator[SourceCorpus]:
    """Each document, with its questions from `sample_questions`, as a corpus of one."""
    for source, pairs in questions.items():
        for document, document_questions in by_document(pairs):
            pairs_of_document = list(
                zip(repeat(document), document_questions, strict=False)
            )
            yield SourceCorpus(source, (document,), pairs_of_document)


def corpora_of(
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    least: int = 2,
    characters: int | None = None,
) -> list[SourceCorpus]:
    """Return the corpus of each source with a question to ask, in alphabetical order.

    A question is asked if no other document of its source has a question in the same
    words, answerable or not: "Who signed the contract?", asked of every contract, has
    no right document. ``ValueError`` if a source has fewer documents than ``least`` or
    two with the same id, or if no source has a question to ask.
    """
    corpora = []
    for source, documents_by_id in sorted(_by_source(documents).items()):
        _check_number(source, len(documents_by_id), least)
        in_order = [documents_by_id[doc_id] for doc_id in sorted(documents_by_id)]
        corpora.append(_corpus(source, in_order, per_source, seed, characters))
    with_questions = [corpus for corpus in corpora if corpus.questions]
    if not with_questions:
        left_out = 0
        for corpus in corpora:
            left_out += corpus.left_out
        raise ValueError(
            "the data have no answerable question with evidence that only one document"
            " of its source answers; expected at least one"
            f" ({left_out} have the same words as"
            " another document's question, or evidence that is cut off)"
        )
    return with_questions


def _by_source(documents: Sequence[Document]) -> dict[str, dict[str, Document]]:
    """Documents by source and id."""
    sources: dict[str, dict[str, Document]] = {}
    for document in documents:
        documents_by_id = sources.setdefault(document.source, {})
        if document.doc_id in documents_by_id:
            raise ValueError(
                f"source {document.source!r} has two documents with the id"
                f" {document.doc_id!r:.80}; expected one: give each file once"
            )
        documents_by_id[document.doc_id] = document
    return sources


def _check_number(source: str, number: int, least: int) -> None:
    if number >= least:
        return
    plural = "s" * (number != 1)
    smaller = ", or a smaller --among" if least > 2 else ""
    raise ValueError(
        f"source {source!r} has {number} document{plural};"
        f" expected at least {least}: give more of its documents{smaller}"
    )


def _corpus(
    source: str,
    documents: list[Document],
    per_source: int | None,
    seed: int,
    characters: int | None,
) -> SourceCorpus:
    ids_by_words: dict[str, set[str]] = {}
    for document in documents:
        for question in document.questions:
            ids_by_words.setdefault(_words(question), set()).add(document.doc_id)
    documents_to_ask = []
    for document in documents:
        unique_questions = [
            question
            for question in document.questions
            if len(ids_by_words[_words(question)]) == 1
        ]
        document_to_ask = replace(document, questions=tuple(unique_questions))
        if characters is not None:
            document_to_ask = shortened(document_to_ask, characters)
        documents_to_ask.append(document_to_ask)
    samples = sample_questions(documents_to_ask, per_source, seed)
    left_out = _answerable(documents) - _answerable(documents_to_ask)
    return SourceCorpus(source, documents_to_ask, samples.get(source, []), left_out)


def _words(question: Question) -> str:
    return " ".join(question.text.split()).casefold()


def _answerable(documents: Sequence[Document]) -> int:
    """The number of answerable questions with evidence."""
    number = 0
    for document in documents:
        for question in document.questions:
            number += bool(question.evidence) and question.answerable
    return number
