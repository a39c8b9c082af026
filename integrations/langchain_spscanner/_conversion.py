"""Documents to texts that are scanned, and what was found back to documents; both classes use it."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from langchain_core.documents import Document

from langchain_spscanner._identity import (
    canonical,
    digest,
    is_chunk,
    own_name,
    parent_name,
    require_document,
    score_of,
    start_of,
)
from langchain_spscanner._wholes import Wholes
from spscanner_rag.retrieval.pieces import JoinedText, Piece, copied_metadata, join_pieces
from spscanner_rag.retrieval.search import Hit

_PAGES = ("page", "page_number", "page_label")
_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


@dataclass(frozen=True, eq=False)
class Reading:
    """Documents joined to texts.

    Attributes
    ----------
    documents
        As given.
    source_ids
        Name of what the offsets of each document count in: itself, or the document that it was cut from.
    texts
        What is scanned; the numbers of its pieces are those of ``documents``.
    """

    documents: tuple[Document, ...]
    source_ids: tuple[str, ...]
    texts: tuple[JoinedText, ...]

    @cached_property
    def text_of(self) -> list[int]:
        """Number of the text that each document stands in; -1 for an empty document."""
        numbers = [-1] * len(self.documents)
        for number, text in enumerate(self.texts):
            for placed in text.placed:
                numbers[placed.number] = number
        return numbers

    def result(self, hit: Hit, retrieval_score: float | None = None) -> Document:
        """What was found as a document of its own, which shares nothing with the one that it was found in."""
        place = hit.place
        document = self.documents[place.piece]
        if place.source_start is not None and place.source_end is not None:
            start, end = place.source_start, place.source_end
            identity = f"{self.source_ids[place.piece]}:{start}-{end}"
        else:
            start, end = _span_by_the_chunk(hit, document)
            within = (
                digest(hit.text) if place.piece_start is None else f"{place.piece_start}-{place.piece_end}"
            )
            identity = f"{own_name(document)}:{within}"
        metadata = copied_metadata(document.metadata) | {
            "relevance_score": hit.score,
            "start_index": start,
            "end_index": end,
            "spscanner_logit": hit.logit,
            "spscanner_id": identity,
        }
        if retrieval_score is not None:
            metadata["spscanner_retrieval_score"] = retrieval_score
        return Document(page_content=hit.text, metadata=metadata, id=identity)


def _span_by_the_chunk(hit: Hit, chunk: Document) -> tuple[int, int]:
    """What the chunk itself says, if it does: its offset contradicts another chunk's, or is not known."""
    start, place = start_of(chunk), hit.place
    if start is None or place.piece_start is None or place.piece_end is None:
        return -1, -1  # as LangChain's splitters say it
    return start + place.piece_start, start + place.piece_end


class Text(NamedTuple):
    """A text to scan, what its pieces are, and the score that the first stage gave to all of it, if it did."""

    joined: JoinedText
    reading: Reading
    retrieval_score: float | None = None

    def result(self, hit: Hit, keep_retrieval_score: bool) -> Document:
        """As `Reading.result`."""
        if not keep_retrieval_score:
            return self.reading.result(hit)
        own = score_of(self.reading.documents[hit.place.piece])
        return self.reading.result(hit, own if self.retrieval_score is None else self.retrieval_score)


def read(documents: Sequence[Document], document_key: str | None, wholes: Wholes | None = None) -> Reading:
    """Join documents to texts.

    Parameters
    ----------
    documents
        A document with an integer ``start_index`` in its metadata is a chunk, any other is whole.
    document_key
        Documents whose metadata agree here are read as one text. None: each alone.
    wholes
        What chunks were cut from, where it is at hand: it is read then, for the sake of the chunks.

    Raises
    ------
    TypeError
        If one is not a Document.
    """
    for document in documents:
        require_document(document, "documents")
    sources: dict[Hashable, str] = {}
    source_ids: list[str] = []
    pieces: list[Piece] = []
    groups = [_group(document, document_key) for document in documents]
    positions = _positions(documents, groups)
    for number, document in enumerate(documents):
        start = start_of(document)
        whole = wholes.only(document) if wholes else None
        source: Hashable
        if whole is not None:
            name = own_name(whole)
            source = ("given", name)
            sources[source] = whole.page_content
        elif is_chunk(document):
            name = parent_name(document)
            source = ("parent", name)
        else:
            name, start = own_name(document), 0
            source = ("whole", name, document.page_content)  # one id may stand for several texts
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
    return Reading(tuple(documents), tuple(source_ids), tuple(join_pieces(pieces, sources)))


def _group(document: Document, document_key: str | None) -> str | None:
    value = None if document_key is None else document.metadata.get(document_key)
    return None if value is None else canonical(value)


def _positions(documents: Sequence[Document], groups: Sequence[str | None]) -> list[float | None]:
    """Page numbers by the first key that all documents of a group have as a number."""
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        if group is not None:
            members.setdefault(group, []).append(number)
    positions: list[float | None] = [None] * len(documents)
    for numbers in members.values():
        for key in _PAGES:
            pages = [_page(documents[number].metadata.get(key)) for number in numbers]
            if None not in pages:
                for number, page in zip(numbers, pages, strict=True):
                    positions[number] = page
                break
    return positions


def _page(value: object) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
