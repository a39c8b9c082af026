"""Copies of documents, which a retriever holds."""

from collections.abc import Iterable

from langchain_core.documents import Document

from langchain_spscanner._document_names import content_name, document_name
from spscanner_rag.retrieval import copied_metadata


def unique_copies(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Independent copies of documents, each with a unique id, without duplicates.

    ``ValueError`` for two different documents with the same id.
    """
    copies: dict[str, Document] = {}
    for document in documents:
        require_document(document, "documents")
        name = document_name(document)
        copy = copies.get(name)
        if copy is None:
            copies[name] = Document(
                page_content=document.page_content,
                metadata=copied_metadata(document.metadata),
                id=name,
            )
        elif content_name(copy) != content_name(document):
            raise ValueError(
                f"documents: got two different documents with the id {name!r}; expected"
                " a different id for each, or None to make one from its text and"
                " metadata"
            )
    return tuple(copies.values())


def require_document(document: object, where: str) -> None:
    """Raise ``TypeError`` for anything but a Document."""
    if isinstance(document, Document):
        return
    got = type(document).__name__
    if hasattr(document, "get_content"):
        got = (
            "a LlamaIndex node (convert it: Document(it.get_content(),"
            " metadata=it.metadata))"
        )
    raise TypeError(
        f"{where}: got {got}; expected langchain_core.documents.Document objects"
    )
