"""Haystack documents as texts to read, and results as new documents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from haystack import Document
from typing_extensions import override

from spscanner_rag.retrieval import Answer, Hit, Piece, ReadText, join_pieces


def unique_documents(documents: Sequence[Document]) -> list[Document]:
    """The documents without duplicates.

    Of those with one id, the one with the highest score stays.
    """
    best_of_id: dict[str, Document] = {}
    for document in documents:
        best = best_of_id.setdefault(document.id, document)
        if (document.score or 0) > (best.score or 0):
            best_of_id[document.id] = document
    return list(best_of_id.values())


def read_documents(documents: Sequence[Document]) -> list[ReadText[Document]]:
    """Documents as texts.

    Chunks that Haystack's splitters cut from one document are read together.
    """
    pieces = [_piece(number, document) for number, document in enumerate(documents)]
    return [ReadText(joined, documents) for joined in join_pieces(pieces)]


def _piece(number: int, document: Document) -> Piece:
    """A document as a piece, whose source's second part is the id of its document."""
    text = document.content or ""
    start = document.meta.get("split_idx_start")
    parent = document.meta.get("source_id")
    if type(start) is int and isinstance(parent, str):
        source = ("parent", parent)
        return Piece(text=text, key=str(number), source=source, start=start)
    source = ("whole", document.id)
    return Piece(text=text, key=str(number), source=source, start=0, last=True)


class DocumentAnswer(Answer[Document, Document]):
    """Results as new documents, with the metadata of those they were found in."""

    page_keys: ClassVar = ("page_number",)

    @override
    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        place = hit.place
        source_id = place.source[1]  # type: ignore[index]  # see `_piece`
        meta = self.metadata(hit, text, place.piece_number)
        meta["source_id"] = source_id
        meta["split_idx_start"] = place.source_start
        meta["split_idx_end"] = place.source_end
        meta |= self.place_metadata(hit, text)
        name = ""  # Haystack then makes a digest
        if place.source_start is not None:
            name = f"{source_id}:{place.source_start}-{place.source_end}"
        sentence = Document(id=name, content=hit.text, meta=meta, score=hit.score)
        self.results.append(sentence)

    @override
    def add_piece(
        self,
        best: Hit,
        text: ReadText[Document],
        piece_number: int,
        content: str,
        reductions: Mapping[str, float],
    ) -> None:
        meta = {**self.metadata(best, text, piece_number), **reductions}
        document = text.items[piece_number]
        result = replace(document, content=content, meta=meta, score=best.score)
        self.results.append(result)

    @override
    def content(self, item_or_result: Document) -> str:
        return item_or_result.content or ""

    @override
    def metadata_of(self, item: Document) -> Mapping[str, Any]:
        return item.meta

    @override
    def retrieval_score_of(self, item: Document) -> float | None:
        return item.score
