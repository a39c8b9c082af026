"""Files that `spscanner_rag.files.read` reads, in both frameworks, as their pages of documentation do it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import Scanner

DOCS = Path(__file__).resolve().parents[2] / "docs"


def documents_of(page: str, document: type[Any]) -> Callable[[str], list[Any]]:
    """The function of the recipe."""
    text = (DOCS / page).read_text(encoding="utf-8")
    begin = text.index("from spscanner_rag.files import read\n")
    recipe = text[begin : text.index("\n\n\npath", begin)]
    names: dict[str, Any] = {"Document": document}
    exec(compile(recipe, page, "exec"), names)
    return names["documents_of"]


@pytest.fixture
def treaty(tmp_path: Path, pdf_of: Callable[..., bytes]) -> str:
    path = tmp_path / "treaty.pdf"
    path.write_bytes(pdf_of([["It rained in the", "harbour."], [], ["Anne signed the", "treaty in May."]]))
    return str(path)


def test_pages_of_a_pdf_in_llama_index(treaty: str, tiny_scanner: Scanner) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core import Document

    from llama_index.retrievers.spscanner import SPScannerRetriever

    documents = documents_of("llama-index.md", Document)(treaty)
    retriever = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner, similarity_top_k=9)
    found = {each.node.get_content(): each.node.metadata for each in retriever.retrieve("Who signed it?")}
    assert {text: metadata["page_label"] for text, metadata in found.items()} == {
        "It rained in the\nharbour.": "1",
        "Anne signed the\ntreaty in May.": "3",
    }


def test_pages_of_a_pdf_in_langchain(treaty: str, tiny_scanner: Scanner) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document

    from langchain_spscanner import SPScannerRetriever

    documents = documents_of("langchain.md", Document)(treaty)
    retriever = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner, k=9)
    found = {each.page_content: each.metadata for each in retriever.invoke("Who signed it?")}
    assert {text: (metadata["page"], metadata["page_label"]) for text, metadata in found.items()} == {
        "It rained in the\nharbour.": (0, "1"),
        "Anne signed the\ntreaty in May.": (2, "3"),
    }
