"""The documents of a retriever and their word counts in a folder."""

from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from spscanner_rag.retrieval import Corpus, read_corpus, write_corpus

_FRAMEWORK = "langchain"


def persist_documents(path: str | Path, documents: tuple[Document, ...], corpus: Corpus) -> None:
    """Write documents and counts; ``ValueError`` for metadata that JSON cannot keep."""
    write_corpus(path, _FRAMEWORK, (_record(document) for document in documents), corpus)


def load_documents(path: str | Path) -> tuple[list[Document], Corpus]:
    """Read documents and counts; ``ValueError`` if the folder does not hold them."""
    records, corpus = read_corpus(path, _FRAMEWORK)
    return [Document(**record) for record in records], corpus


def _record(document: Document) -> dict[str, Any]:
    return {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}
