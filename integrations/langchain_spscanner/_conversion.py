"""Convert LangChain documents to texts to scan."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from langchain_core.documents import Document

from langchain_spscanner._identity import (
    Wholes,
    group_of,
    is_chunk,
    own_name,
    parent_name,
    require_document,
    score_of,
    stable_name,
    start_of,
)
from spscanner_rag.retrieval import JoinedText, Piece, join_pieces, page_number

_PAGES = ("page", "page_number", "page_label")


@dataclass(frozen=True, eq=False)
class JoinedDocuments:
    """Documents joined to texts; the index of a piece is that of its document.

    ``source_names`` names, for each document, the document that its offsets refer to: itself, or the one it was
    cut from.
    """

    documents: tuple[Document, ...]
    source_names: tuple[str, ...]
    texts: tuple[JoinedText, ...]

    @cached_property
    def text_of(self) -> list[int]:
        """Index of the text that contains each document; -1 for an empty document."""
        numbers = [-1] * len(self.documents)
        for number, text in enumerate(self.texts):
            for placed in text.placed:
                numbers[placed.number] = number
        return numbers


class TextToScan(NamedTuple):
    """A text, the documents it was joined from, and the first stage's score of the text, if any."""

    joined: JoinedText
    origin: JoinedDocuments
    retrieval_score: float | None = None


def read(
    documents: Sequence[Document],
    document_key: str | None,
    wholes: Wholes | None = None,
    *,
    complete: bool = False,
) -> JoinedDocuments:
    """Join documents to texts.

    A document with an integer ``start_index`` in its metadata is a chunk, and so are several with equal metadata
    and a value under ``document_key``; any other is whole. Documents with the same value there become one text. If
    ``wholes`` has the document of a chunk, that is read instead. ``complete`` says that documents without
    ``start_index`` are known to be whole, so that pages may continue each other.
    """
    for document in documents:
        require_document(document, "documents")
    sources: dict[Hashable, str] = {}
    names: list[str] = []
    pieces: list[Piece] = []
    groups = [group_of(document, document_key) for document in documents]
    positions = _positions(documents, groups)
    cut_up = _cut_up(documents, groups)
    for number, document in enumerate(documents):
        start = start_of(document)
        held = wholes.holding(document) if wholes else []
        source: Hashable
        whole = False
        if wholes and len(held) == 1:
            name = stable_name(wholes.documents[held[0]])
            source = ("given", own_name(wholes.documents[held[0]]))
            sources[source] = wholes.documents[held[0]].page_content
        elif is_chunk(document) or number in cut_up:
            name = parent_name(document)
            source = ("parent", name)
        else:
            name, start, whole = stable_name(document), 0, True
            source = ("whole", name, document.page_content)  # one id may belong to several texts
        names.append(name)
        pieces.append(
            Piece(
                text=document.page_content,
                key=str(number),
                source=source,
                start=start,
                group=groups[number],
                position=positions[number],
                page=positions[number] is not None,
                last=whole and complete,
            )
        )
    return JoinedDocuments(tuple(documents), tuple(names), tuple(join_pieces(pieces, sources)))


def _cut_up(documents: Sequence[Document], groups: Sequence[str | None]) -> set[int]:
    """Indices of the chunks without ``start_index``: those whose `parent_name` several texts share."""
    of_parent: dict[str, list[int]] = {}
    sizes = Counter(groups)
    for number, group in enumerate(groups):
        if group is not None and sizes[group] > 1:
            of_parent.setdefault(parent_name(documents[number]), []).append(number)
    several = (own for own in of_parent.values() if len({documents[n].page_content for n in own}) > 1)
    return {number for own in several for number in own}


def page_of(document: Document) -> object:
    """What the metadata say about the document's page; None if nothing."""
    return next((document.metadata[key] for key in _PAGES if document.metadata.get(key) is not None), None)


def _positions(documents: Sequence[Document], groups: Sequence[str | None]) -> list[float | None]:
    """Page numbers, from the first key that is a number in all documents of a group."""
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        if group is not None:
            members.setdefault(group, []).append(number)
    positions: list[float | None] = [None] * len(documents)
    for numbers in members.values():
        for key in _PAGES:
            pages = {number: page_number(documents[number].metadata.get(key)) for number in numbers}
            if None not in pages.values():
                for number, page in pages.items():
                    positions[number] = page
                break
    return positions


class HeldDocuments(Wholes):
    """The documents of a retriever: joined once, and the choice among them by a first stage."""

    @cached_property
    def _joined(self) -> JoinedDocuments:
        return read(self.documents, self.document_key, complete=True)

    @cached_property
    def texts(self) -> list[TextToScan]:
        """All texts."""
        return [TextToScan(joined, self._joined) for joined in self._joined.texts]

    def chosen(self, found: Sequence[Document]) -> list[TextToScan]:
        """The texts that contain these chunks, in their order; an unknown chunk is a text of its own."""
        best: dict[int, int] = {}  # index of a text -> index of its first chunk
        unknown: list[int] = []
        for number, chunk in enumerate(found):
            texts = {self._joined.text_of[at] for at in self.holding(chunk)}
            if len(texts) == 1:
                best.setdefault(texts.pop(), number)
            else:
                unknown.append(number)
        ranked = [
            (number, TextToScan(self._joined.texts[at], self._joined, score_of(found[number])))
            for at, number in best.items()
        ]
        alone = read([found[number] for number in unknown], self.document_key)
        ranked += [
            (unknown[min(placed.number for placed in joined.placed)], TextToScan(joined, alone))
            for joined in alone.texts
            if joined.placed
        ]
        return [text for _, text in sorted(ranked, key=lambda pair: pair[0])]
