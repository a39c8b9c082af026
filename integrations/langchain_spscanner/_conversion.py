"""Convert LangChain documents to texts to scan, and hits back to documents."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from langchain_core.documents import Document

from langchain_spscanner._identity import (
    Wholes,
    digest,
    group_of,
    is_chunk,
    own_name,
    parent_name,
    require_document,
    score_of,
    start_of,
)
from spscanner_rag.retrieval import Hit, JoinedText, Piece, copied_metadata, join_pieces, page_number

_PAGES = ("page", "page_number", "page_label")


@dataclass(frozen=True, eq=False)
class JoinedDocuments:
    """Documents joined to texts; the index of a piece is that of its document.

    ``source_ids`` names, for each document, the document that its offsets refer to: itself, or the one it was cut
    from.
    """

    documents: tuple[Document, ...]
    source_ids: tuple[str, ...]
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

    def result(self, hit: Hit, keep_retrieval_score: bool) -> Document:
        """Convert a hit to a new document, which shares nothing with the one that contains it."""
        place, document = hit.place, self.origin.documents[hit.place.piece]
        if place.source_start is not None and place.source_end is not None:
            start, end = place.source_start, place.source_end
            identity = f"{self.origin.source_ids[place.piece]}:{start}-{end}"
        else:
            start = end = -1  # unknown, as LangChain's splitters mark it
            within = digest(hit.text)
            if place.piece_start is not None and place.piece_end is not None:
                within = f"{place.piece_start}-{place.piece_end}"
                own_start = start_of(document)  # None, or contradicted by another chunk's
                if own_start is not None:
                    start, end = own_start + place.piece_start, own_start + place.piece_end
            identity = f"{own_name(document)}:{within}"
        metadata = copied_metadata(document.metadata) | {
            "relevance_score": hit.score,
            "start_index": start,
            "end_index": end,
            "spscanner_logit": hit.logit,
            "spscanner_id": identity,
        }
        score = score_of(document) if self.retrieval_score is None else self.retrieval_score
        if keep_retrieval_score and score is not None:
            metadata["spscanner_retrieval_score"] = score
        return Document(page_content=hit.text, metadata=metadata, id=identity)


def read(
    documents: Sequence[Document], document_key: str | None, wholes: Wholes | None = None
) -> JoinedDocuments:
    """Join documents to texts.

    A document with an integer ``start_index`` in its metadata is a chunk, any other is whole. Documents with the
    same metadata under ``document_key`` become one text. If ``wholes`` has the document of a chunk, that is read
    instead.
    """
    for document in documents:
        require_document(document, "documents")
    sources: dict[Hashable, str] = {}
    source_ids: list[str] = []
    pieces: list[Piece] = []
    groups = [group_of(document, document_key) for document in documents]
    positions = _positions(documents, groups)
    for number, document in enumerate(documents):
        start = start_of(document)
        held = wholes.holding(document) if wholes else []
        source: Hashable
        if wholes and len(held) == 1:
            whole = wholes.documents[held[0]]
            name = own_name(whole)
            source = ("given", name)
            sources[source] = whole.page_content
        elif is_chunk(document):
            name = parent_name(document)
            source = ("parent", name)
        else:
            name, start = own_name(document), 0
            source = ("whole", name, document.page_content)  # one id may belong to several texts
        source_ids.append(name)
        pieces.append(
            Piece(
                text=document.page_content,
                key=str(number),
                source=source,
                start=start,
                group=groups[number],
                position=positions[number],
            )
        )
    return JoinedDocuments(tuple(documents), tuple(source_ids), tuple(join_pieces(pieces, sources)))


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
        return read(self.documents, self.document_key)

    @property
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
