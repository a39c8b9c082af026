"""From documents to sub-documents: what is left out, and why."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.synthesis.filters import LanguageDetector, SeenTexts, is_boilerplate
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.sub_documents import Cutter, SubDocument
from spscanner_rag.text.token_counts import CountTokens

Shares = Callable[[Document], str | None]
"""Names the test document that a document shares text with; None if there is none."""


@dataclass(slots=True)
class Supply:
    """Sub-documents of a stream of documents, one at a time.

    Attributes
    ----------
    settings, count_tokens
    detector : LanguageDetector, optional
        Default: documents in every language are taken.
    shares : callable, optional
        Default: no document is left out for what it shares with test documents.
    documents, sub_documents : int
        How many have been read and made.
    left_out : Counter
        Documents and sub-documents that were left out, by reason.
    contaminated : list
        The first of the documents that share text with test documents, with what they share.
    """

    settings: SynthesisSettings
    count_tokens: CountTokens
    detector: LanguageDetector | None = None
    shares: Shares | None = None
    documents: int = 0
    sub_documents: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    contaminated: list[str] = field(default_factory=list)

    def of(self, documents: Iterable[Document]) -> Iterator[SubDocument]:
        """The sub-documents of documents, numbered from 0."""
        seen, names, cutter = SeenTexts(), SeenTexts(), Cutter(self.settings, self.count_tokens)
        for document in documents:
            self.documents += 1
            if reason := self._reason(document, seen):
                self.left_out[reason] += 1
                continue
            if not names.is_new(f"{document.source}\n{document.doc_id}"):
                document = _renamed(document, names)
            yield from self._cut(document, cutter)

    def _reason(self, document: Document, seen: SeenTexts) -> str | None:
        settings = self.settings
        if not document.text.strip():
            return "empty"
        if not seen.is_new(document.text):
            return "a duplicate"
        if self.detector is not None:
            probability = self.detector.probability(document.text, settings.language)
            if probability < settings.language_probability:
                return "in another language"
        if self.shares is not None and (told := self.shares(document)) is not None:
            if len(self.contaminated) < 20:
                self.contaminated.append(f"{document.doc_id}: {told}")
            return "shares text with a test document"
        return None

    def _cut(self, document: Document, cutter: Cutter) -> Iterator[SubDocument]:
        made = 0
        for sub in cutter.cut(document):
            made += 1
            self.sub_documents += 1
            yield sub
        if not made:
            self.left_out["too short"] += 1

    def reason_against(self, sub: SubDocument) -> str | None:
        """Why no request should be spent on a sub-document; None if nothing speaks against it."""
        spans = [(sentence.start, sentence.end) for sentence in sub.sentences]
        if self.settings.boilerplate and is_boilerplate(sub.text, spans):
            return "licences and copyright notices"
        return None


def _renamed(document: Document, names: SeenTexts) -> Document:
    """A document with a number behind its id, which another one has."""
    number = 2
    while not names.is_new(f"{document.source}\n{document.doc_id}~{number}"):
        number += 1
    return Document(
        f"{document.doc_id}~{number}", document.source, document.title, document.text, (), document.split
    )
