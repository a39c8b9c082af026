"""The retriever over many documents: what it reads, filters, changes, folders."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, Document, ImageNode, IndexNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llama_index.retrievers.spscanner import SPScannerRetriever
from llama_index.retrievers.spscanner.node_filter import node_filter
from tests.integrations.hosts import Reader

QUERY = "Who signed the treaty?"


@pytest.fixture
def reader() -> Reader:
    return Reader()


def below(value: int) -> MetadataFilters:
    return MetadataFilters(
        filters=[MetadataFilter(key="n", value=value, operator=FilterOperator.LT)]
    )


def test_a_filter_on_chunks_reads_the_whole_document(
    reader: Reader, documents: list[Document]
) -> None:
    chunks = SentenceSplitter(chunk_size=40, chunk_overlap=0).get_nodes_from_documents(
        documents
    )
    for number, chunk in enumerate(chunks):
        chunk.metadata["n"] = number
    retriever = SPScannerRetriever(
        chunks, documents=documents, scorer=reader, filters=below(1)
    )
    found = pickle.loads(pickle.dumps(retriever)).retrieve(QUERY)
    assert [n.node.text for n in found] == [
        n.node.text for n in retriever.retrieve(QUERY)
    ]
    assert reader.read == [documents[0].text]
    assert 0 < len(found) < 9
    end = len(chunks[0].get_content())
    assert all(
        n.node.start_char_idx is not None and n.node.start_char_idx < end for n in found
    )


def test_nodes_of_all_kinds_are_kept(
    chunks: list[BaseNode], documents: list[Document], word_scorer: Any, tmp_path: Path
) -> None:
    chunks[0].embedding = [0.5, 0.25]
    others = [
        ImageNode(image="aGk=", id_="image"),
        IndexNode(text="An index of treaties.", index_id="i", id_="index"),
        TextNode(text="A treaty alone.", id_="alone", excluded_llm_metadata_keys=["a"]),
    ]
    nodes: list[BaseNode] = [*chunks, *others]
    retriever = SPScannerRetriever(nodes, documents=documents, scorer=word_scorer)
    retriever.persist(tmp_path)
    loaded = SPScannerRetriever.load(tmp_path, scorer=word_scorer)
    assert loaded.retrieve(QUERY) == retriever.retrieve(QUERY)
    assert [item.node for item in loaded._held.items] == nodes


def test_a_docstore_is_not_kept_but_can_be_given_again(
    chunks: list[BaseNode], documents: list[Document], word_scorer: Any, tmp_path: Path
) -> None:
    store = SimpleDocumentStore()
    store.add_documents(documents)
    retriever = SPScannerRetriever(chunks[:1], docstore=store, scorer=word_scorer)
    retriever.persist(tmp_path)
    assert (
        len(SPScannerRetriever.load(tmp_path, scorer=word_scorer).retrieve(QUERY)) < 9
    )
    loaded = SPScannerRetriever.load(tmp_path, docstore=store, scorer=word_scorer)
    assert loaded.retrieve(QUERY) == retriever.retrieve(QUERY)


class Own(TextNode):
    rating: int = 3


def test_a_node_of_an_own_class_cannot_be_kept(tmp_path: Path) -> None:
    retriever = SPScannerRetriever([Own(text="x", id_="n")], model="no/such-model")
    with pytest.raises(
        ValueError,
        match="node 'n' is Own; expected one of LlamaIndex's own node classes",
    ):
        retriever.persist(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


YES, NO = below(2), below(1)


@pytest.mark.parametrize(
    ("parts", "condition", "expected"),
    [
        ([YES, NO], "and", False),
        ([YES, YES], "and", True),
        ([YES, NO], "or", True),
        ([NO, NO], "or", False),
        ([NO, NO], "not", True),
        ([YES, NO], "not", False),
        ([], "and", True),
        ([], "or", True),
        ([], "not", True),
        (
            [MetadataFilters(filters=[NO, YES], condition=FilterCondition.OR), YES],
            "and",
            True,
        ),
        (
            [MetadataFilters(filters=[YES], condition=FilterCondition.NOT), YES],
            "and",
            False,
        ),
    ],
)
def test_conditions_and_nested_filters(
    parts: list[MetadataFilters], condition: str, expected: bool
) -> None:
    filters = MetadataFilters(filters=parts, condition=FilterCondition(condition))
    assert node_filter(filters)(TextNode(text="x", metadata={"n": 1})) is expected
