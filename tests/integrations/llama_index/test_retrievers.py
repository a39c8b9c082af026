"""The retriever: what it holds, its first stage, and its results."""

import asyncio
from typing import Any

import pytest
from llama_index.core import (
    DocumentSummaryIndex,
    MockEmbedding,
    SimpleKeywordTableIndex,
    StorageContext,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    get_response_synthesizer,
)
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.postprocessor.spscanner.node_relations import source_id
from llama_index.retrievers.spscanner import SPScannerRetriever

QUERY = "Who signed the treaty with the captain?"


class Fixed(BaseRetriever):
    """A first stage that always returns the same nodes."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        self.nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


def ids(found: list[NodeWithScore]) -> list[str]:
    return [n.node.node_id for n in found]


def sources(found: list[NodeWithScore]) -> set[str]:
    return {n.node.ref_doc_id or "" for n in found}


@pytest.mark.parametrize("kept", ["ids", "file"])
def test_documents_of_what_a_retriever_finds_are_read_whole(
    documents: list[Document], chunks: list[BaseNode], word_scorer: Any, kept: str
) -> None:
    """Also if the documents were read again and got other ids than those in a store."""
    wholes = [document.model_copy(deep=True) for document in documents]
    of_one = [
        chunk.model_copy(deep=True) for chunk in chunks if chunk.ref_doc_id == "harbour"
    ]
    found = of_one[-1:]
    for node in [*wholes, *of_one]:
        if kept != "ids" and node in wholes:
            node.id_ = f"anew {node.id_}"
        if kept == "file":
            node.metadata["file_path"] = (
                f"{node.ref_doc_id or node.node_id}".removeprefix("anew ")
            )
    first = Fixed([NodeWithScore(node=node, score=0.5) for node in found])
    options: dict[str, Any] = {"scorer": word_scorer, "similarity_top_k": None}
    (whole,) = [one for one in wholes if one.node_id.endswith("harbour")]
    expected = [
        n.node.text for n in SPScannerRetriever([whole], **options).retrieve(QUERY)
    ]
    for retriever in (
        SPScannerRetriever(retriever=first, documents=wholes, **options),
        SPScannerRetriever.from_documents(wholes, first_stage=first, **options),
        SPScannerRetriever(of_one, documents=wholes, retriever=first, **options),
    ):
        got = retriever.retrieve(QUERY)
        assert sorted(n.node.text for n in got) == sorted(expected)
        assert sources(got) == {whole.node_id}
    post = SPScannerPostprocessor(scorer=word_scorer, top_n=None, documents=wholes)
    for one in post.postprocess_nodes(first.nodes, query_str=QUERY):
        assert (
            whole.text[one.node.start_char_idx : one.node.end_char_idx] == one.node.text
        )
        assert one.node.ref_doc_id == whole.node_id
        assert one.document_score == max(n.score or 0 for n in got)


def test_a_text_of_several_documents_is_read_in_none(
    documents: list[Document], word_scorer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    twins = [documents[0].model_copy(update={"id_": name}) for name in "ab"]
    loose = TextNode(text=documents[0].text[:60], id_="n", metadata={"file_path": "a"})
    other = TextNode(text=documents[0].text[:60], id_="o", metadata={"file_path": "b"})
    for whole in twins:
        whole.metadata = {"file_path": "a"}
    for node, wholes in ((loose, twins), (other, twins), (other, documents)):
        retriever = SPScannerRetriever(
            retriever=Fixed([NodeWithScore(node=node)]),
            documents=wholes,
            scorer=word_scorer,
        )
        assert sources(retriever.retrieve(QUERY)) == {node.node_id}
        assert f"nothing found belongs to the {len(wholes)} documents" in caplog.text


def test_deleting_whole_texts(
    documents: list[Document], chunks: list[BaseNode], word_scorer: Any
) -> None:
    retriever = SPScannerRetriever(chunks, documents=documents, scorer=word_scorer)
    retriever.delete("lighthouse")
    assert retriever.ref_doc_ids == ["harbour"]
    retriever.add([TextNode(text="New.", id_="lighthouse")])
    assert retriever.ref_doc_ids == ["harbour", "lighthouse"]
    found = [n for n in retriever.retrieve(QUERY) if n.node.ref_doc_id == "lighthouse"]
    assert [n.node.get_content() for n in found] == ["New."]


def test_from_a_shared_docstore(
    documents: list[Document], chunks: list[BaseNode], word_scorer: Any
) -> None:
    store = SimpleDocumentStore()
    store.add_documents([*chunks, *documents])
    context = StorageContext.from_defaults(docstore=store)
    some = [node for node in chunks if node.ref_doc_id == "harbour"]
    index = VectorStoreIndex(
        some, storage_context=context, embed_model=MockEmbedding(4)
    )
    retriever = SPScannerRetriever.from_index(index, scorer=word_scorer)
    assert retriever.ref_doc_ids == ["harbour"]
    assert sources(retriever.retrieve(QUERY)) == {"harbour"}


@pytest.mark.parametrize(
    "kind", [DocumentSummaryIndex, TreeIndex, SummaryIndex, SimpleKeywordTableIndex]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_what_an_index_made_itself_is_no_source(
    documents: list[Document],
    chunks: list[BaseNode],
    word_scorer: Any,
    kind: Any,
    chunked: bool,
) -> None:
    options: dict[str, Any] = {"num_children": 2} if kind is TreeIndex else {}
    if kind is DocumentSummaryIndex:
        synthesizer = get_response_synthesizer(
            response_mode=ResponseMode.COMPACT, llm=MockLLM(max_tokens=5)
        )
        options = {"response_synthesizer": synthesizer, "embed_model": MockEmbedding(4)}
    build = kind if chunked else kind.from_documents
    index = build(
        chunks if chunked else documents, llm=MockLLM(max_tokens=5), **options
    )
    retriever = SPScannerRetriever.from_index(
        index, scorer=word_scorer, similarity_top_k=None
    )
    whole = {document.node_id: document.text for document in documents}
    found = retriever.retrieve(QUERY)
    assert {source_id(one.node) for one in found} == set(whole)
    assert all(one.node.get_content() in whole[source_id(one.node)] for one in found)


@pytest.mark.parametrize("how", ["obj", "object_map"])
def test_an_index_node_stands_for_its_object(
    documents: list[Document], word_scorer: Any, how: str
) -> None:
    asked = SPScannerRetriever(documents[:1], scorer=word_scorer, similarity_top_k=1)
    for obj, expected in (
        (asked, ids(asked.retrieve(QUERY))),
        (documents[1], ["harbour"]),
    ):
        node = IndexNode(text="He signed the treaty, says a note.", index_id="h")
        options: dict[str, Any] = {"object_map": {"h": obj}}
        if how == "obj":
            node, options = node.model_copy(update={"obj": obj}), {}
        for retriever in (
            SPScannerRetriever([node, documents[0]], scorer=word_scorer, **options),
            SPScannerRetriever(documents[:1], scorer=word_scorer, **options),
        ):
            retriever.add([node])
            found = asyncio.run(retriever.aretrieve(QUERY))
            assert set(expected) <= set(ids(found))
            assert "note" not in " ".join(one.node.get_content() for one in found)


@pytest.mark.parametrize(
    "other",
    [
        Document(text="Another text.", id_="d"),
        Document(text="One text.", id_="d", metadata={"page_label": "2"}),
        TextNode(text="One text, longer.", id_="d"),
    ],
)
def test_two_different_ones_with_one_id_are_refused(
    other: BaseNode, word_scorer: Any
) -> None:
    one = Document(text="One text.", id_="d")
    message = (
        r"nodes: got two different ones with the id 'd'; expected a different id for"
        r" each"
    )
    with pytest.raises(ValueError, match=message):
        SPScannerRetriever.from_documents([one, other], scorer=word_scorer)  # type: ignore[list-item]
    retriever = SPScannerRetriever.from_documents(
        [one, one.model_copy()], scorer=word_scorer
    )
    with pytest.raises(ValueError, match=message):
        retriever.add([one, other])
    retriever.add([other])  # it replaces the earlier one
    assert retriever.ref_doc_ids == ["d"]


def test_an_index_without_text_is_refused_by_name(
    chunks: list[BaseNode], word_scorer: Any
) -> None:
    class RemoteVectorStore(SimpleVectorStore):
        stores_text: bool = True

        def get_nodes(
            self, node_ids: list[str] | None = None, filters: Any = None
        ) -> list[BaseNode]:
            if not listed:
                raise ValueError("filters are needed")
            return listed[-1]

    listed: list[list[BaseNode]] = []
    context = StorageContext.from_defaults(vector_store=RemoteVectorStore())
    index = VectorStoreIndex(
        chunks, storage_context=context, embed_model=MockEmbedding(4)
    )
    for answer in (None, []):
        listed += [] if answer is None else [answer]
        with pytest.raises(
            ValueError, match="is empty, and its RemoteVectorStore lists no nodes"
        ) as refused:
            SPScannerRetriever.from_index(index, scorer=word_scorer)
        advice = (
            "SPScannerRetriever(retriever=index.as_retriever(), documents=documents)"
        )
        assert advice in str(refused.value)
    listed.append(chunks[::-1])  # like Chroma's, which takes no limit
    found = SPScannerRetriever.from_index(index, scorer=word_scorer).retrieve(QUERY)
    assert ids(found) == ids(
        SPScannerRetriever.from_nodes(chunks[::-1], scorer=word_scorer).retrieve(QUERY)
    )
    with pytest.raises(ValueError, match="SummaryIndex is empty; expected"):
        SPScannerRetriever.from_index(SummaryIndex([]))


def test_callback_manager_and_objects_are_passed_on(
    documents: list[Document], word_scorer: Any
) -> None:
    manager = CallbackManager()
    retriever = SPScannerRetriever(
        documents, scorer=word_scorer, callback_manager=manager, object_map={"a": 1}
    )
    assert (retriever.callback_manager, retriever.object_map) == (manager, {"a": 1})
    obj = IndexNode(text="x", index_id="b", obj=documents[0])
    assert SPScannerRetriever([], objects=[obj]).object_map == {"b": documents[0]}
    index = VectorStoreIndex(
        documents, embed_model=MockEmbedding(4), callback_manager=manager
    )
    assert SPScannerRetriever.from_index(index).callback_manager is manager
