"""LangChain's documents for the held corpus, and the documents that answer a question."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.documents import Document

from langchain_spscanner._documents import (
    SCORE_KEY,
    Wholes,
    digest,
    own_copies,
    own_name,
    page_of,
    read,
    require_document,
    score_of,
    scored_document,
    stable_name,
    start_of,
)
from spscanner_rag.retrieval import (
    ID_KEY,
    Answer,
    Hit,
    Host,
    ReadText,
    compression_metadata,
    place_metadata,
)

UNKNOWN = -1  # as LangChain's splitters mark an offset that they cannot find


@dataclass(frozen=True)
class DocumentHost(Host[Document]):
    """How LangChain's documents are held; ``document_key`` as for the retriever."""

    document_key: str | None

    framework = "langchain"
    items_name = "Documents"

    def key(self, item: Document) -> str:
        return own_name(item)

    def join(self, items: Sequence[Document]) -> list[ReadText[Document]]:
        return read(items, self.document_key, complete=True)

    def finder(
        self, items: Sequence[Document], texts: Sequence[ReadText[Document]]
    ) -> Callable[[Document], int | None]:
        text_of = {
            placed.number: number for number, text in enumerate(texts) for placed in text.joined.placed
        }
        wholes = Wholes(items, self.document_key)

        def find(chunk: Document) -> int | None:
            found = {text_of.get(number) for number in wholes.holding(chunk)}
            return found.pop() if len(found) == 1 else None

        return find

    def read(self, found: Sequence[Document]) -> list[ReadText[Document]]:
        return read(found, self.document_key)

    def check_found(self, found: object) -> Sequence[Document]:
        documents = super().check_found(found)
        for document in documents:
            require_document(document, "the first stage's documents")
        return documents

    def score(self, found: Sequence[Document]) -> float | None:
        return score_of(found[0])

    def records(self, items: Sequence[Document]) -> Iterable[Mapping[str, Any]]:
        return (
            {"id": item.id, "page_content": item.page_content, "metadata": item.metadata} for item in items
        )

    def restored(self, records: Sequence[Mapping[str, Any]]) -> tuple[Self, Sequence[Document]]:
        return self, own_copies(Document(**record) for record in records)


def _own_start(hit: Hit, text: ReadText[Document]) -> int | None:
    """Where a hit begins by the offsets of the chunks there, which others contradict; None unless these agree."""
    starts = set()
    for placed in text.joined.touching(hit.start, hit.end):
        if (own := start_of(text.items[placed.number])) is not None:
            starts.add(own + placed.offset + hit.start - placed.start)
    return starts.pop() if len(starts) == 1 else None


class DocumentAnswer(Answer[Document, Document]):
    """Results as new documents, which share nothing with those that contain the sentences."""

    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        place, document = hit.place, text.items[hit.place.piece]
        if place.source_start is not None and place.source_end is not None:
            start, end = place.source_start, place.source_end
            identity = f"{place.source[1]}:{start}-{end}"  # type: ignore[index]  # see `read`
        else:
            start = end = UNKNOWN
            within = digest(hit.text)
            if place.piece_start is not None and place.piece_end is not None:
                within = f"{place.piece_start}-{place.piece_end}"
                if (own := _own_start(hit, text)) is not None:
                    start, end = own, own + place.piece_end - place.piece_start
            identity = f"{stable_name(document)}:{within}"
        metadata = self._metadata(hit, text, place.piece)
        metadata |= {"start_index": start, "end_index": end, ID_KEY: identity}
        metadata |= place_metadata(
            hit,
            text.joined,
            lambda piece: text.items[piece].metadata,
            lambda piece: page_of(text.items[piece]),
            UNKNOWN,
        )
        self.found.append(scored_document(hit.text, metadata, identity))

    def add_piece(
        self, best: Hit, text: ReadText[Document], piece: int, pruned: tuple[str, dict[str, float]] | None
    ) -> None:
        document = text.items[piece]
        content, saved = (document.page_content, {}) if pruned is None else pruned
        metadata = self._metadata(best, text, piece) | saved
        self.found.append(scored_document(content, metadata, document.id))

    def content(self, of: Document) -> str:
        return of.page_content

    def own_score(self, item: Document) -> float | None:
        return score_of(item)

    def set_compression(self, result: Document, kept: int, read: int) -> None:
        result.metadata |= compression_metadata(kept, read)

    def _metadata(self, hit: Hit, text: ReadText[Document], piece: int) -> dict[str, Any]:
        return self.metadata(hit, text, piece, text.items[piece].metadata) | {SCORE_KEY: hit.score}
