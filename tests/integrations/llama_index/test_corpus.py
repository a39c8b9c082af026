"""The retriever over many documents: what is read, filters, changes, persist and load."""

import asyncio
import pickle
import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index.retrievers.spscanner import SPScannerRetriever
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.units import Unit

QUERY = "Who signed the treaty?"


class Reader:
    """Remembers which texts it was given, and over which collection."""

    uses_collection = True

    def __init__(self) -> None:
        self.read: list[str] = []
        self.units_of_collection: list[int] = []

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return self.score_units_many([(query, text, units)])[0]

    def score_units_many(
        self,
        requests: Sequence[Any],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[NDArray[np.float32]]:
        self.read += [text for _, text, _ in requests]
        self.units_of_collection.append(-1 if collection is None else collection.n_units)
        words = set(requests[0][0].lower().strip("?").split())
        return [
            np.array([len(words & set(text[u.start : u.end].lower().split())) for u in units], np.float32)
            for _, text, units in requests
        ]


class Fixed(BaseRetriever):
    """Returns the same nodes for every question."""

    def __init__(self, nodes: Sequence[BaseNode]) -> None:
        self.nodes = [NodeWithScore(node=node, score=0.5) for node in nodes]
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def notes() -> list[Document]:
    return [
        Document(text=f"Note {n}. The well of house {n} was dry.", metadata={"n": n}, id_=str(n))
        for n in range(30)
    ]


def numbers(found: Sequence[NodeWithScore]) -> set[int]:
    return {scored.node.metadata["n"] for scored in found}


def below(value: int) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key="n", value=value, operator=FilterOperator.LT)])


def test_the_ten_best_documents_are_read_by_default(reader: Reader, notes: list[Document]) -> None:
    found = SPScannerRetriever.from_documents(notes, scorer=reader).retrieve("Was the well of house 17 dry?")
    assert len(reader.read) == 10
    assert "17" in found[0].node.get_content()
    assert reader.units_of_collection == [60]  # the statistics are those of all documents


def test_all_are_read_within_the_bounds_or_without_a_first_stage(
    reader: Reader, notes: list[Document]
) -> None:
    for options in ({"first_stage": "none"}, {"read_documents": 30}, {"read_documents": None}):
        retriever = SPScannerRetriever(notes, scorer=reader, similarity_top_k=None, **options)
        assert numbers(retriever.retrieve(QUERY)) == set(range(30))
    assert reader.read == [note.text for note in notes] * 3
    few = SPScannerRetriever(notes, scorer=reader, similarity_top_k=None, read_tokens=25)
    assert len(numbers(few.retrieve("house 3"))) == 2


def test_a_retriever_as_first_stage_under_either_name(reader: Reader, notes: list[Document]) -> None:
    first = Fixed([notes[5], notes[2]])
    for name in ("first_stage", "retriever"):
        retriever = SPScannerRetriever(notes, scorer=reader, similarity_top_k=None, **{name: first})
        assert numbers(retriever.retrieve(QUERY)) == {5, 2}
    alone = SPScannerRetriever(first_stage=first, scorer=reader, read_documents=1)
    assert numbers(alone.retrieve(QUERY)) == {5}
    with pytest.raises(ValueError, match="retriever: got first_stage as well"):
        SPScannerRetriever(first_stage="bm25", retriever=first)
    with pytest.raises(TypeError, match="first_stage is int; expected a BaseRetriever"):
        SPScannerRetriever(first_stage=3)  # type: ignore[arg-type]


def test_a_first_stage_that_returns_nothing_is_not_replaced_by_bm25(
    reader: Reader, notes: list[Document]
) -> None:
    class Nothing(Fixed):
        def retrieve(self, str_or_query_bundle: Any) -> Any:
            return None

        async def aretrieve(self, str_or_query_bundle: Any) -> Any:
            return None

    retriever = SPScannerRetriever(notes, scorer=reader, retriever=Nothing([]))
    message = "the first stage returned NoneType; expected a list of nodes with scores"
    with pytest.raises(TypeError, match=message):
        retriever.retrieve("house 17")
    with pytest.raises(TypeError, match=message):
        asyncio.run(retriever.aretrieve("house 17"))


def test_the_score_of_the_first_stage_is_kept_on_request(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever(notes, scorer=reader, keep_retrieval_score=True, similarity_top_k=None)
    found = retriever.retrieve("house 17")
    scores = {n.node.metadata["n"]: n.metadata["spscanner_retrieval_score"] for n in found}
    assert max(scores, key=scores.__getitem__) == 17
    every = SPScannerRetriever(notes, scorer=reader, keep_retrieval_score=True, first_stage="none")
    assert not any("spscanner_retrieval_score" in n.node.metadata for n in every.retrieve("house 17"))


def test_a_single_document_is_read_as_by_the_scanner_alone(
    tiny_scanner: Scanner, documents: list[Document]
) -> None:
    (result,) = tiny_scanner.scan_many([(QUERY, documents[0].text)])
    retriever = SPScannerRetriever(documents[:1], scanner=tiny_scanner, order="document")
    assert [n.metadata["spscanner_logit"] for n in retriever.retrieve(QUERY)] == result.logits.tolist()


def test_scores_are_the_same_whatever_is_read(tiny_scanner: Scanner, documents: list[Document]) -> None:
    given = [*documents, Document(text="A treaty on wells. It was dry.", id_="w", metadata={"n": 1})]

    def logits(**options: Any) -> dict[str, float]:
        retriever = SPScannerRetriever(given, scanner=tiny_scanner, similarity_top_k=None, **options)
        return {n.node.node_id: n.metadata["spscanner_logit"] for n in retriever.retrieve(QUERY)}

    every = logits(first_stage="none")
    assert len(every) == 17
    for options in ({"read_documents": 1}, {"read_documents": 2}, {"filters": below(2)}):
        some = logits(**options)
        assert 0 < len(some) < 17
        assert some == pytest.approx({name: every[name] for name in some}, abs=1e-4)


@pytest.mark.parametrize("first_stage", ["bm25", "none", "retriever"])
@pytest.mark.parametrize(("bound", "expected"), [(4, 4), (0, 0), (99, 30)])
def test_filters_come_before_reading(
    reader: Reader, notes: list[Document], first_stage: str, bound: int, expected: int
) -> None:
    first: Any = Fixed(notes) if first_stage == "retriever" else first_stage
    options: dict[str, Any] = {"similarity_top_k": None, "read_documents": None, "first_stage": first}
    found = SPScannerRetriever(notes, scorer=reader, filters=below(bound), **options).retrieve(QUERY)
    assert numbers(found) == set(range(expected))
    assert len(reader.read) == expected


def test_filters_come_before_the_bounds(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever(notes, scorer=reader, filters=below(10), read_documents=3)
    assert len(numbers(retriever.retrieve("Was the well of house 17 dry?"))) == len(reader.read) == 3


def test_a_filter_on_chunks_reads_the_document_and_returns_the_chunks(
    reader: Reader, documents: list[Document]
) -> None:
    chunks = SentenceSplitter(chunk_size=40, chunk_overlap=0).get_nodes_from_documents(documents)
    for number, chunk in enumerate(chunks):
        chunk.metadata["n"] = number
    retriever = SPScannerRetriever(chunks, documents=documents, scorer=reader, filters=below(1))
    found = retriever.retrieve(QUERY)
    assert reader.read == [documents[0].text]
    assert 0 < len(found) < 9
    end = len(chunks[0].get_content())
    assert all(n.node.start_char_idx is not None and n.node.start_char_idx < end for n in found)


def test_what_is_no_filter_is_refused(notes: list[Document]) -> None:
    with pytest.raises(TypeError, match="filters is dict; expected"):
        SPScannerRetriever(notes, filters={"n": 1})  # type: ignore[arg-type]


def test_nothing_held_and_nothing_to_read(reader: Reader) -> None:
    for nodes in (
        [],
        [Document(text="")],
        [Document(text=" \n"), Document(text="")],
        [ImageNode(image_url="x")],
    ):
        assert SPScannerRetriever(nodes, model="no/such-model").retrieve(QUERY) == []
    assert reader.read == []


def test_no_model_is_loaded_to_count(notes: list[Document]) -> None:
    retriever = SPScannerRetriever(notes, model="no/such-model")
    assert len(retriever._held.counted()[1].counts) == 30


def test_words_are_counted_once_in_copies_and_pickles(
    notes: list[Document], monkeypatch: pytest.MonkeyPatch, word_scorer: Any
) -> None:
    retriever = SPScannerRetriever(notes, scorer=word_scorer)
    data = pickle.dumps(retriever)
    monkeypatch.setattr(CollectionIndex, "add", None)
    for other in (deepcopy(retriever), pickle.loads(data)):
        assert other.retrieve("house 17") == retriever.retrieve("house 17")


def test_adding_counts_what_is_new(
    reader: Reader, notes: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = SPScannerRetriever(notes, scorer=reader, read_documents=1, similarity_top_k=1)
    counted = []
    add = CollectionIndex.add

    def seen(self: CollectionIndex, key: str, texts: Sequence[str]) -> None:
        counted.append(key)
        add(self, key, texts)

    monkeypatch.setattr(CollectionIndex, "add", seen)
    retriever.add([Document(text="A lynx in snow.", metadata={"n": 99}, id_="lynx")])
    assert numbers(retriever.retrieve("lynx")) == {99}
    retriever.add([Document(text="A snake in snow.", metadata={"n": 98}, id_="lynx")])  # in its place
    assert numbers(retriever.retrieve("snake")) == {98}
    retriever.delete("lynx")
    assert numbers(retriever.retrieve("lynx snake")) == {0}
    assert len(counted) == 2
    assert reader.units_of_collection == [61, 61, 60]


def test_a_question_sees_the_documents_as_they_were(notes: list[Document]) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Waits(Reader):
        def score_units_many(self, requests: Sequence[Any], **options: Any) -> list[NDArray[np.float32]]:
            began.set()
            assert go_on.wait(10)
            return super().score_units_many(requests, **options)

    scorer = Waits()
    retriever = SPScannerRetriever(notes[:5], scorer=scorer, similarity_top_k=None, batch_size=2)
    found: list[NodeWithScore] = []
    thread = threading.Thread(target=lambda: found.extend(retriever.retrieve("well")))
    thread.start()
    assert began.wait(10)
    retriever.add(notes[5:8])
    retriever.delete("0")
    go_on.set()
    thread.join()
    assert numbers(found) == {0, 1, 2, 3, 4}
    assert scorer.units_of_collection == [10, 10, 10]
    assert numbers(retriever.retrieve("well")) == {1, 2, 3, 4, 5, 6, 7}


def test_persist_and_load(
    reader: Reader, notes: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes[0].metadata["nested"] = {"list": [1, 2.5, None, "\ud800"]}
    retriever = SPScannerRetriever(notes, scorer=reader, similarity_top_k=7, filters=below(20))
    retriever.persist(tmp_path / "kept")
    monkeypatch.setattr(CollectionIndex, "add", None)
    loaded = SPScannerRetriever.load(tmp_path / "kept", scorer=reader, similarity_top_k=7, filters=below(20))
    assert loaded.ref_doc_ids == retriever.ref_doc_ids
    assert loaded.retrieve("house 17") == retriever.retrieve("house 17")
    monkeypatch.undo()
    loaded.add([Document(text="A lynx in snow.", metadata={"n": 99})])
    loaded.persist(tmp_path / "kept")
    again = SPScannerRetriever.load(str(tmp_path / "kept"), scorer=reader, read_documents=1)
    assert numbers(again.retrieve("lynx")) == {99}


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
    assert len(SPScannerRetriever.load(tmp_path, scorer=word_scorer).retrieve(QUERY)) < 9
    loaded = SPScannerRetriever.load(tmp_path, docstore=store, scorer=word_scorer)
    assert loaded.retrieve(QUERY) == retriever.retrieve(QUERY)


class Own(TextNode):
    rating: int = 3


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            TextNode(text="x", id_="n", metadata={"when": date(1911, 5, 14)}),
            r"metadata\['when'\] of node 'n' is date",
        ),
        (Own(text="x", id_="n"), "node 'n' is Own; expected one of LlamaIndex's own node classes"),
    ],
)
def test_what_cannot_be_kept_is_named(node: BaseNode, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        SPScannerRetriever([node], model="no/such-model").persist(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path, notes: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"got no manifest\.json there"):
        SPScannerRetriever.load(tmp_path)
    SPScannerRetriever(notes, model="no/such-model").persist(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace("llama-index", "langchain"), "utf-8")
    with pytest.raises(ValueError, match="got documents of 'langchain'; expected those of 'llama-index'"):
        SPScannerRetriever.load(tmp_path)


async def test_async_reads_the_same(reader: Reader, notes: list[Document]) -> None:
    retriever = SPScannerRetriever(notes, scorer=reader, filters=below(20))
    assert await retriever.aretrieve("house 17") == retriever.retrieve("house 17")
