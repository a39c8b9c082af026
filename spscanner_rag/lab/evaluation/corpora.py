"""The documents of a source as one corpus, and the questions that are asked of all of them together."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spscanner_rag.lab.evaluation.shortening import shortened
from spscanner_rag.lab.evidence.questions import Document, Question, document_digest
from spscanner_rag.lab.evidence.sampling import Asked, sample_questions


@dataclass(frozen=True)
class SourceCorpus:
    """The documents of a source, and the questions asked of them.

    Attributes
    ----------
    source
    documents
        Sorted by their ids. The order decides between documents of equal score.
    asked
        Questions with their right document, one of ``documents``, in the seeded order.
    repeated
        Number of questions left out because another document has a question of the same words.
    cut_off
        Number of questions left out because their evidence is not in the part of the document that is read.
    """

    source: str
    documents: tuple[Document, ...]
    asked: Sequence[Asked]
    repeated: int
    cut_off: int

    @property
    def digest(self) -> str:
        """Identifies the documents."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(document_digest(document).encode())
        return digest.hexdigest()


def corpora_of(
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    least: int = 2,
    characters: int | None = None,
) -> list[SourceCorpus]:
    """The corpus of each source.

    A question is asked if no other document of its source has a question of the same words, answerable or not:
    "Who signed the contract?" asked of every contract has no right document. Letter case and white space make no
    difference.

    Parameters
    ----------
    documents : sequence of Document
    per_source, seed
        See `sample_questions`; the sample is drawn from the questions that can be asked.
    least : int, default 2
        The least number of documents of a source.
    characters : int, optional
        Cut longer documents to this many characters; see `shortened`.

    Returns
    -------
    list of SourceCorpus
        Sources in alphabetical order; those without a question to ask are left out.

    Raises
    ------
    ValueError
        If a source has fewer documents than ``least`` or two of the same id, or no source has a question to ask.
    """
    sources: dict[str, dict[str, Document]] = {}
    for document in documents:
        own = sources.setdefault(document.source, {})
        if document.doc_id in own:
            raise ValueError(
                f"source {document.source!r} has two documents with the id {document.doc_id!r:.80}; expected "
                "one: give each file once"
            )
        own[document.doc_id] = document
    corpora = []
    for source, own in sorted(sources.items()):
        if len(own) < least:
            raise ValueError(
                f"source {source!r} has {len(own)} document{'s' * (len(own) != 1)}; expected at least {least}: "
                "give more of its documents" + (", or a smaller --among" if least > 2 else "")
            )
        corpora.append(_corpus(source, [own[name] for name in sorted(own)], per_source, seed, characters))
    if not any(corpus.asked for corpus in corpora):
        repeated, cut_off = (sum(getattr(c, name) for c in corpora) for name in ("repeated", "cut_off"))
        raise ValueError(
            "the data have no answerable question with evidence that only one document of its source answers; "
            f"expected at least one ({repeated} have the words of another document's question, the evidence of "
            f"{cut_off} is cut off)"
        )
    return [corpus for corpus in corpora if corpus.asked]


def _corpus(
    source: str, documents: list[Document], per_source: int | None, seed: int, characters: int | None
) -> SourceCorpus:
    askers: dict[str, set[str]] = {}
    for document in documents:
        for question in document.questions:
            askers.setdefault(_words(question), set()).add(document.doc_id)

    def only(document: Document) -> Document:
        own = tuple(q for q in document.questions if len(askers[_words(q)]) == 1)
        return replace(document, questions=own)

    unique = [only(document) for document in documents]
    read = unique if characters is None else [shortened(document, characters) for document in unique]
    every, own, left = map(_answerable, (documents, unique, read))
    asked = sample_questions(read, per_source, seed).get(source, [])
    return SourceCorpus(source, tuple(read), asked, every - own, own - left)


def _words(question: Question) -> str:
    return " ".join(question.text.split()).casefold()


def _answerable(documents: Sequence[Document]) -> int:
    return sum(bool(q.evidence) and q.answerable for document in documents for q in document.questions)
