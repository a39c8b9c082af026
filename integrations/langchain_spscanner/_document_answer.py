"""The results for a query, as new LangChain documents."""

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.documents import Document
from typing_extensions import override

from langchain_spscanner._canonical import digest
from langchain_spscanner._document_metadata import (
    PAGE_KEYS,
    SCORE_KEY,
    UNKNOWN_OFFSET,
    retrieval_score_of,
    start_of,
)
from langchain_spscanner._document_names import stable_name
from langchain_spscanner._scored_metadata import scored_document
from spscanner_rag.retrieval import ID_KEY, Answer, Hit, ReadText


class DocumentAnswer(Answer[Document, Document]):
    """Results as new documents, which share no objects with those they come from."""

    page_keys: ClassVar = PAGE_KEYS
    unknown_offset: ClassVar = UNKNOWN_OFFSET

    @override
    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        start, end = _span(hit, text)
        name = _sentence_id(hit, text)
        metadata = self.metadata(hit, text, hit.place.piece_number)
        metadata |= {"start_index": start, "end_index": end, ID_KEY: name}
        metadata |= self.place_metadata(hit, text)
        self.results.append(scored_document(hit.text, metadata, name))

    @override
    def add_piece(
        self,
        best: Hit,
        text: ReadText[Document],
        piece_number: int,
        content: str,
        reductions: Mapping[str, float],
    ) -> None:
        metadata = {**self.metadata(best, text, piece_number), **reductions}
        self.results.append(
            scored_document(content, metadata, text.items[piece_number].id)
        )

    @override
    def content(self, item_or_result: Document) -> str:
        return item_or_result.page_content

    @override
    def retrieval_score_of(self, item: Document) -> float | None:
        return retrieval_score_of(item)

    @override
    def metadata_of(self, item: Document) -> Mapping[str, Any]:
        return item.metadata

    @override
    def metadata(
        self, hit: Hit, text: ReadText[Document], piece_number: int
    ) -> dict[str, Any]:
        return super().metadata(hit, text, piece_number) | {SCORE_KEY: hit.score}


def _span(hit: Hit, text: ReadText[Document]) -> tuple[int, int]:
    """The span of a sentence in its document, -1 where that is unknown."""
    place = hit.place
    if place.source_start is not None and place.source_end is not None:
        return place.source_start, place.source_end
    if place.piece_start is not None and place.piece_end is not None:
        start = _start_by_its_chunks(hit, text)
        if start is not None:
            return start, start + place.piece_end - place.piece_start
    return UNKNOWN_OFFSET, UNKNOWN_OFFSET


def _sentence_id(hit: Hit, text: ReadText[Document]) -> str:
    """An id that is the same in every run: a document's or chunk's name, and a span."""
    place = hit.place
    if place.source_start is not None and place.source_end is not None:
        source_name = place.source[1]  # type: ignore[index]  # see `read_documents`
        return f"{source_name}:{place.source_start}-{place.source_end}"
    within = digest(hit.text)
    if place.piece_start is not None and place.piece_end is not None:
        within = f"{place.piece_start}-{place.piece_end}"
    return f"{stable_name(text.items[place.piece_number])}:{within}"


def _start_by_its_chunks(hit: Hit, text: ReadText[Document]) -> int | None:
    """Where a hit begins by the offsets of its chunks, where others conflict.

    None if these do, too.
    """
    starts = set()
    for placed in text.joined.touching(hit.start, hit.end):
        chunk_start = start_of(text.items[placed.number])
        if chunk_start is not None and chunk_start >= 0:
            starts.add(chunk_start + placed.offset + hit.start - placed.start)
    return starts.pop() if len(starts) == 1 else None
