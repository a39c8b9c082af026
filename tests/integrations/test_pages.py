"""Pages as the readers of both frameworks give them: one document, without running headers and footers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document, NodeWithScore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever

# As pypdf extracts them: a header, lines of one width, a footer with the page number, and no blank lines.
HEADER = "Port Elm Historical Society\n"
PAGES = [
    f"{HEADER}The harbour of Port Elm was built in 1701 by the\ntown's own people. In the winter of 1810 the "
    "council met\neleven times. A treaty was at last signed with the\nPage 1 of 3",
    f"{HEADER}northern towns by Captain Moore. Trade doubled within\nthree years. The lighthouse burned down in "
    "1820.\nPage 2 of 3",
    f"{HEADER}It was rebuilt in stone. Its new lamp could be seen from\nthe far side of the strait.\nPage 3 of 3",
]
SENTENCES = [
    "The harbour of Port Elm was built in 1701 by the\ntown's own people.",
    "In the winter of 1810 the council met\neleven times.",
    "A treaty was at last signed with the\nnorthern towns by Captain Moore.",
    "Trade doubled within\nthree years.",
    "The lighthouse burned down in 1820.",
    "It was rebuilt in stone.",
    "Its new lamp could be seen from\nthe far side of the strait.",
]


class Ones:
    """Scores every sentence alike, and keeps the texts that it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def score_units(self, query: str, text: str, units: Sequence[Any]) -> Any:
        self.texts.append(text)
        return np.ones(len(units), np.float32)


def llama_index_pages(**metadata: Any) -> list[Document]:
    """As `SimpleDirectoryReader` gives them."""
    file = {"file_path": "/data/report.pdf", "file_name": "report.pdf"} | metadata
    return [
        Document(text=text, metadata={"page_label": str(number), **file})
        for number, text in enumerate(PAGES, start=1)
    ]


def langchain_pages() -> list[LangChainDocument]:
    """As ``PyPDFLoader`` gives them."""
    file = {"source": "/data/report.pdf", "total_pages": len(PAGES)}
    return [
        LangChainDocument(text, metadata={**file, "page": number, "page_label": str(number + 1)})
        for number, text in enumerate(PAGES)
    ]


def check_llama_index(found: Sequence[NodeWithScore]) -> None:
    pages = {str(number): text for number, text in enumerate(PAGES, start=1)}
    for result in found:
        node = result.node
        stands = pages[node.metadata["page_label"]][node.start_char_idx : node.end_char_idx]
        if "spscanner_continued_page" in node.metadata:
            start, end = (node.metadata[f"spscanner_continued_{key}"] for key in ("start", "end"))
            stands += "\n" + pages[node.metadata["spscanner_continued_page"]][start:end]
        assert stands == node.get_content()
    over = [n.node for n in found if "spscanner_continued_page" in n.node.metadata]
    assert [node.get_content() for node in over] == [SENTENCES[2]]
    assert (over[0].metadata["page_label"], over[0].metadata["spscanner_continued_page"]) == ("1", "2")


def postprocessed(nodes: Sequence[BaseNode], **options: Any) -> list[NodeWithScore]:
    post = SPScannerPostprocessor(scorer=Ones(), order="document", **options)
    return post.postprocess_nodes(nodes, query_str="treaty")


def contents(found: Sequence[NodeWithScore]) -> list[str]:
    return [n.node.get_content() for n in found]


def test_pages_of_a_file_are_one_document_in_llama_index() -> None:
    scorer = Ones()
    pages = llama_index_pages()
    retriever = LlamaIndexRetriever.from_documents([pages[2], *pages[:2]], scorer=scorer, order="document")
    found = retriever.retrieve("treaty")
    assert len(scorer.texts) == 1
    assert contents(found) == SENTENCES
    check_llama_index(found)
    assert contents(postprocessed(pages)) == SENTENCES


@pytest.mark.parametrize("size", [40, 45, 60, 1024])
def test_their_chunks_too(size: int) -> None:
    splitter = SentenceSplitter(chunk_size=size, chunk_overlap=size // 4)
    chunks = splitter.get_nodes_from_documents(llama_index_pages())
    assert len(chunks) > 3 or size == 1024
    found = postprocessed(chunks)
    assert contents(found) == SENTENCES
    check_llama_index(found)


def test_chunks_between_which_text_is_missing_are_not_joined() -> None:
    splitter = SentenceSplitter(chunk_size=40, chunk_overlap=0)
    chunks = splitter.get_nodes_from_documents(llama_index_pages())
    some = [node for node in chunks if "A treaty" not in node.get_content()]
    assert len(some) < len(chunks)
    assert all("spscanner_continued_page" not in n.node.metadata for n in postprocessed(some))


@pytest.mark.parametrize(
    ("metadata", "document_key", "texts"),
    [
        ({}, "auto", 1),
        ({"file_path": None}, "auto", 1),  # file_name
        ({"page_label": None}, "auto", 3),  # no pages
        ({"file_path": None, "file_name": None}, "auto", 3),
        ({"page_label": None, "page": 7}, "auto", 1),
        ({}, None, 3),
        ({}, "file_name", 1),
        ({}, "title", 3),
    ],
)
def test_document_key(metadata: dict[str, Any], document_key: str | None, texts: int) -> None:
    scorer = Ones()
    pages = llama_index_pages(**metadata)
    SPScannerPostprocessor(scorer=scorer, document_key=document_key).postprocess_nodes(pages, query_str="x")
    assert len(scorer.texts) == texts
    scorer = Ones()
    LlamaIndexRetriever.from_documents(pages, scorer=scorer, document_key=document_key).retrieve("x")
    assert len(scorer.texts) == texts
    if texts == 3:
        assert sorted(scorer.texts) == sorted(PAGES)  # nothing is left out of a page that is read alone


def test_pages_of_two_files_are_two_documents() -> None:
    scorer = Ones()
    pages = llama_index_pages() + llama_index_pages(file_path="/data/other.pdf")
    SPScannerPostprocessor(scorer=scorer).postprocess_nodes(pages, query_str="x")
    assert len(scorer.texts) == 2


def check_langchain(found: Sequence[LangChainDocument]) -> None:
    for result in found:
        meta = result.metadata
        stands = PAGES[meta["page"]][meta["start_index"] : meta["end_index"]]
        if "spscanner_continued_page" in meta:
            start, end = meta["spscanner_continued_start"], meta["spscanner_continued_end"]
            stands += "\n" + PAGES[meta["spscanner_continued_page"]][start:end]
        assert stands == result.page_content
    over = [d for d in found if "spscanner_continued_page" in d.metadata]
    assert [d.page_content for d in over] == [SENTENCES[2]]
    assert over[0].metadata["spscanner_continued_page"] == 1


def test_pages_of_a_file_are_one_document_in_langchain() -> None:
    pages = langchain_pages()
    retriever = SPScannerRetriever.from_documents([pages[2], *pages[:2]], scorer=Ones(), order="document")
    found = retriever.invoke("treaty")
    assert [d.page_content for d in found] == SENTENCES
    check_langchain(found)


def test_chunks_of_pages_in_langchain() -> None:
    splitter = RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=20, add_start_index=True)
    chunks = splitter.split_documents(langchain_pages())
    compressor = SPScannerCompressor(documents=langchain_pages(), scorer=Ones(), order="document")
    found = compressor.compress_documents(chunks, "treaty")
    assert [d.page_content for d in found] == SENTENCES
    check_langchain(found)
    # Without the pages, nothing tells whether a chunk is the last of its page.
    alone = SPScannerCompressor(scorer=Ones()).compress_documents(chunks, "treaty")
    assert all("spscanner_continued_page" not in d.metadata for d in alone)


def test_a_compressor_does_not_take_chunks_for_pages() -> None:
    chunks = [page.model_copy(update={"page_content": page.page_content[:-12]}) for page in langchain_pages()]
    found = SPScannerCompressor(scorer=Ones()).compress_documents(chunks, "treaty")
    assert all("spscanner_continued_page" not in d.metadata for d in found)


def test_a_sentence_that_begins_on_a_page_that_was_not_given_has_no_span() -> None:
    """Its text is not all on the page that was given, and an offset that counts elsewhere is none."""
    pages = llama_index_pages()
    only = MetadataFilters(filters=[MetadataFilter(key="page_label", value="2")])
    retriever = LlamaIndexRetriever.from_documents(pages, scorer=Ones(), filters=only, order="document")
    (first, *_) = retriever.retrieve("treaty")
    assert contents([first]) == [SENTENCES[2]]
    assert (first.node.ref_doc_id, first.node.metadata["page_label"]) == (pages[1].node_id, "2")
    assert first.node.start_char_idx is first.node.end_char_idx is None
    given = langchain_pages()
    found = SPScannerRetriever.from_documents(given, scorer=Ones(), filter={"page": 1}, order="document")
    (begun, *others) = found.invoke("treaty")
    assert begun.page_content == SENTENCES[2]
    assert (begun.metadata["page"], begun.metadata["start_index"], begun.metadata["end_index"]) == (1, -1, -1)
    assert [d.page_content for d in others] == SENTENCES[3:5]
    assert all(d.metadata["start_index"] > 0 for d in others)
