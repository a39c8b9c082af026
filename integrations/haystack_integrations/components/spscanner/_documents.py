"""Haystack's documents as texts to read, and the documents that answer a query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document

from spscanner_rag.retrieval import (
    Answer,
    Hit,
    Piece,
    ReadText,
    compression_metadata,
    join_pieces,
    place_metadata,
)


def once(documents: Sequence[Document]) -> list[Document]:
    """The documents without those that come again, of which the best scored one is kept."""
    own: dict[str, Document] = {}
    for document in documents:
        own[document.id] = max(own.get(document.id, document), document, key=lambda one: one.score or 0)
    return list(own.values())


def read(documents: Sequence[Document]) -> list[ReadText[Document]]:
    """Documents as texts; the chunks that Haystack's splitters cut of one document are read together."""
    pieces = []
    for number, document in enumerate(documents):
        start, parent = document.meta.get("split_idx_start"), document.meta.get("source_id")
        cut = type(start) is int and isinstance(parent, str)
        pieces.append(
            Piece(
                text=document.content or "",
                key=str(number),
                source=("parent", parent) if cut else ("whole", document.id),
                start=start if cut else 0,
                last=not cut,
            )
        )
    return [ReadText(joined, documents) for joined in join_pieces(pieces)]


class Found(Answer[Document, Document]):
    """Results as new documents with the metadata of those they were found in."""

    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        def meta_of(piece: int) -> dict[str, Any]:
            return text.items[piece].meta

        place, start, end = hit.place, hit.place.source_start, hit.place.source_end
        source = place.source[1]  # type: ignore[index]  # see `read`
        meta = self.metadata(hit, text, place.piece, meta_of(place.piece))
        meta |= {"source_id": source, "split_idx_start": start, "split_idx_end": end}
        meta |= place_metadata(hit, text.joined, meta_of, lambda piece: meta_of(piece).get("page_number"))
        name = "" if start is None else f"{source}:{start}-{end}"  # else Haystack's digest
        self.found.append(Document(id=name, content=hit.text, meta=meta, score=hit.score))

    def add_piece(
        self, best: Hit, text: ReadText[Document], piece: int, pruned: tuple[str, dict[str, float]] | None
    ) -> None:
        document = text.items[piece]
        meta = self.metadata(best, text, piece, document.meta)
        content, saved = (document.content, {}) if pruned is None else pruned
        self.found.append(replace(document, content=content, meta=meta | saved, score=best.score))

    def content(self, of: Document) -> str:
        return of.content or ""

    def own_score(self, item: Document) -> float | None:
        return item.score

    def set_compression(self, result: Document, kept: int, read: int) -> None:
        result.meta.update(compression_metadata(kept, read))
