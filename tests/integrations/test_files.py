"""Files that `spscanner_rag.files.read` reads, in both frameworks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import Scanner
from tests.integrations.hosts import (
    HOLDING,
    LangChainDocument,
    LangChainRetriever,
    LlamaIndexDocument,
    LlamaIndexRetriever,
)

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
    path.write_bytes(
        pdf_of(
            [
                ["It rained in the", "harbour."],
                [],
                ["Anne signed the", "treaty in May."],
            ]
        )
    )
    return str(path)


@pytest.mark.parametrize("host", HOLDING, ids=["langchain", "llama-index"])
def test_pages_of_a_pdf(host: Any, treaty: str, tiny_scanner: Scanner) -> None:
    page, document = {
        LangChainRetriever: ("langchain.md", LangChainDocument),
        LlamaIndexRetriever: ("llama-index.md", LlamaIndexDocument),
    }[host.kind]
    documents = documents_of(page, document)(treaty)
    retriever = host.kind.from_documents(
        documents, scanner=tiny_scanner, **host.options({"k": 9})
    )
    found = [host.found(each) for each in host.call(retriever, "Who signed it?", [])]
    assert {each.text: each.metadata["page_label"] for each in found} == {
        "It rained in the\nharbour.": "1", "Anne signed the\ntreaty in May.": "3"
    }  # fmt: skip
    if page == "langchain.md":
        assert {each.metadata["page"] for each in found} == {0, 2}
