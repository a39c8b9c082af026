"""How LangChain's documents are held between queries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.documents import Document
from typing_extensions import override

from langchain_spscanner._document_copies import require_document, unique_copies
from langchain_spscanner._document_metadata import retrieval_score_of
from langchain_spscanner._document_names import document_name
from langchain_spscanner._read_documents import read_documents
from langchain_spscanner._whole_documents import WholeDocuments
from spscanner_rag.retrieval import Host, ReadText


@dataclass(frozen=True)
class DocumentHost(Host[Document]):
    """How LangChain's documents are held.

    Parameters
    ----------
    document_key : str or None
        That of the retriever.
    """

    document_key: str | None

    framework = "langchain"
    items_name = "Documents"

    @override
    def key(self, item: Document) -> str:
        return document_name(item)

    @override
    def join(self, items: Sequence[Document]) -> list[ReadText[Document]]:
        return read_documents(items, self.document_key, complete=True)

    @override
    def finder(
        self, items: Sequence[Document], texts: Sequence[ReadText[Document]]
    ) -> Callable[[Document], int | None]:
        text_of_item: dict[int, int] = {}
        for number, text in enumerate(texts):
            for placed in text.joined.placed:
                text_of_item[placed.number] = number
        wholes = WholeDocuments(items, self.document_key)

        def text_of(chunk: Document) -> int | None:
            require_document(chunk, "the first stage's documents")
            numbers = {text_of_item.get(item) for item in wholes.holding(chunk)}
            return numbers.pop() if len(numbers) == 1 else None

        return text_of

    @override
    def join_found(self, items: Sequence[Document]) -> list[ReadText[Document]]:
        return read_documents(items, self.document_key)

    @override
    def score(self, items: Sequence[Document]) -> float | None:
        return retrieval_score_of(items[0])

    @override
    def records(self, items: Sequence[Document]) -> Iterable[Mapping[str, Any]]:
        for item in items:
            yield {
                "id": item.id,
                "page_content": item.page_content,
                "metadata": item.metadata,
            }

    @override
    def restored(
        self, records: Sequence[Mapping[str, Any]]
    ) -> tuple[Self, Sequence[Document]]:
        return self, unique_copies(Document(**record) for record in records)
