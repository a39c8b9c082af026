"""Pages of one file are read by their numbers, by one rule for both frameworks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

from langchain_spscanner import SPScannerRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor


class Ones:
    """Scores every sentence alike."""

    def score_units(self, query: str, text: str, units: Sequence[Any]) -> Any:
        return np.ones(len(units), np.float32)


def read_by_langchain(pages: Sequence[tuple[str, object]]) -> list[str]:
    documents = [
        LangChainDocument(text, metadata={"source": "a.pdf", "page": number}) for text, number in pages
    ]
    retriever = SPScannerRetriever.from_documents(documents, scorer=Ones(), order="document")
    return [found.page_content for found in retriever.invoke("one")]


def read_by_llama_index(pages: Sequence[tuple[str, object]]) -> list[str]:
    nodes = [
        LlamaIndexDocument(text=text, metadata={"file_path": "a.pdf", "page": number})
        for text, number in pages
    ]
    post = SPScannerPostprocessor(scorer=Ones(), document_key="file_path", order="document")
    return [found.node.get_content() for found in post.postprocess_nodes(nodes, query_str="one")]  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [read_by_langchain, read_by_llama_index])
@pytest.mark.parametrize(
    ("numbers", "ordered"),
    [
        ((10, 9), True),
        (("10", " 9"), True),
        ((2.5, "2"), True),
        ((True, False), False),  # not a number of a page: as given
        ((True, 0), False),
        (("ii", "i"), False),
        ((float("nan"), 1), False),
    ],
)
def test_pages_are_read_by_number(read: Any, numbers: tuple[object, object], ordered: bool) -> None:
    pages = ["Second one.", "First one."]
    assert read(list(zip(pages, numbers, strict=True))) == (pages[::-1] if ordered else pages)
