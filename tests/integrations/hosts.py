"""The four classes behind one interface, so that one test covers all of them."""

import asyncio
import hashlib
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from langchain_spscanner import SPScannerCompressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import ScanCancelled, Scorer, UnitScores, never
from spscanner_rag.text.units import Unit

HARBOUR = (
    "The harbour was built in 1701. Ships came from the north every week. The council"
    " signed a treaty with the northern towns. Nobody knew who had written it. The"
    " lighthouse burned down in 1820."
)
ISLAND = (
    "The island lies far from the coast. Its well was dry for years. Captain Moore"
    " signed the treaty on the island. The winter was long. Then the people left."
)


@dataclass
class Doc:
    """A document of either framework."""

    text: str
    id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Found:
    """A result of either framework."""

    text: str
    id: str
    score: float
    logit: float
    document_score: float
    retrieval_score: float | None
    answerable: float | None
    span: tuple[int | None, int | None]
    metadata: dict[str, Any]


class Host:
    """One of the four classes. Options are named as in LangChain's compressor."""

    kind: ClassVar[Any]
    names: ClassVar[dict[str, str]] = {}

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        return {self.names.get(name, name): value for name, value in options.items()}

    def of(self, docs: Sequence[Doc], **options: Any) -> Any:
        """Makes the class, with its documents if it holds any."""
        return self.kind(**self.options(options))

    def given(self, docs: Sequence[Doc]) -> list[Any]:
        """The documents as objects of the framework."""
        raise NotImplementedError

    def call(self, made: Any, query: Any, given: Sequence[Any]) -> Any:
        raise NotImplementedError

    def acall(self, made: Any, query: Any, given: Sequence[Any]) -> Awaitable[Any]:
        raise NotImplementedError

    def found(self, result: Any) -> Found:
        raise NotImplementedError

    def ask(self, docs: Sequence[Doc], query: Any, **options: Any) -> list[Found]:
        """What a new object of the class finds."""
        made = self.of(docs, **options)
        return [
            self.found(result) for result in self.call(made, query, self.given(docs))
        ]


class _LangChain(Host):
    def given(self, docs: Sequence[Doc]) -> list[Any]:
        return [
            LangChainDocument(doc.text, id=doc.id, metadata=doc.metadata)
            for doc in docs
        ]

    def found(self, result: LangChainDocument) -> Found:
        own = dict(result.metadata)
        names = "logit", "document_score", "retrieval_score", "answerable"
        scores = (own.pop(f"spscanner_{name}", None) for name in names)
        score = own.pop("relevance_score")
        span = own.pop("start_index", None), own.pop("end_index", None)
        return Found(result.page_content, str(result.id), score, *scores, span, own)


class _LlamaIndex(Host):
    def given(self, docs: Sequence[Doc]) -> list[Any]:
        documents = []
        for doc in docs:
            named = {} if doc.id is None else {"id_": doc.id}
            documents.append(
                LlamaIndexDocument(text=doc.text, metadata=doc.metadata, **named)
            )
        return documents

    def found(self, result: Any) -> Found:
        node = result.node
        span = (
            getattr(node, "start_char_idx", None),
            getattr(node, "end_char_idx", None),
        )
        names = "score", "logit", "document_score", "retrieval_score", "answerable"
        scores = (getattr(result, name) for name in names)
        return Found(
            node.get_content(), node.node_id, *scores, span, dict(node.metadata)
        )


class LangChainRetrieverHost(_LangChain):
    kind = LangChainRetriever

    def of(self, docs: Sequence[Doc], **options: Any) -> Any:
        return self.kind.from_documents(self.given(docs), **self.options(options))

    def call(self, made: Any, query: Any, given: Sequence[Any]) -> Any:
        return made.invoke(query)

    def acall(self, made: Any, query: Any, given: Sequence[Any]) -> Awaitable[Any]:
        return made.ainvoke(query)

    def only(self, **values: object) -> dict[str, Any]:
        """The option that lets only documents with these metadata pass."""
        return {"filter": values}

    def first_stage(self, found: Callable[[str], Any], *, odd: bool = False) -> Any:
        return RunnableLambda(lambda query: found(query))

    def add(self, made: Any, docs: Sequence[Doc]) -> None:
        made.add_documents(self.given(docs))

    def delete(self, made: Any, *ids: str) -> None:
        made.delete(ids)


class LlamaIndexRetrieverHost(_LlamaIndex):
    kind = LlamaIndexRetriever
    names: ClassVar = {"k": "similarity_top_k", "k_per_document": "top_k_per_document"}

    def of(self, docs: Sequence[Doc], **options: Any) -> Any:
        return self.kind(self.given(docs), **self.options(options))

    def call(self, made: Any, query: Any, given: Sequence[Any]) -> Any:
        return made.retrieve(query)

    def acall(self, made: Any, query: Any, given: Sequence[Any]) -> Awaitable[Any]:
        return made.aretrieve(query)

    def only(self, **values: object) -> dict[str, Any]:
        """The option that lets only documents with these metadata pass."""
        parts: list[Any] = [
            MetadataFilter(key=key, value=value) for key, value in values.items()
        ]
        return {"filters": MetadataFilters(filters=parts)}

    def first_stage(self, found: Callable[[str], Any], *, odd: bool = False) -> Any:
        class Stage(BaseRetriever):
            def _retrieve(self, query_bundle: QueryBundle) -> Any:
                nodes = found(query_bundle.query_str)
                return [
                    NodeWithScore(node=node, score=node.metadata.get("score"))
                    for node in nodes
                ]

        class Odd(Stage):
            """Returns something that is not a list.

            The framework's own methods would refuse it first.
            """

            def retrieve(self, str_or_query_bundle: Any) -> Any:
                return found(str_or_query_bundle.query_str)

            async def aretrieve(self, str_or_query_bundle: Any) -> Any:
                return found(str_or_query_bundle.query_str)

        return Odd() if odd else Stage()

    def add(self, made: Any, docs: Sequence[Doc]) -> None:
        made.add(self.given(docs))

    def delete(self, made: Any, *ids: str) -> None:
        made.delete(*ids)


class CompressorHost(_LangChain):
    kind = SPScannerCompressor

    def call(self, made: Any, query: Any, given: Sequence[Any]) -> Any:
        return made.compress_documents(given, query)

    def acall(self, made: Any, query: Any, given: Sequence[Any]) -> Awaitable[Any]:
        return made.acompress_documents(given, query)


class PostprocessorHost(_LlamaIndex):
    kind = SPScannerPostprocessor
    names: ClassVar = {"k": "top_n", "k_per_document": "top_n_per_document"}

    def call(self, made: Any, query: Any, given: Sequence[Any]) -> Any:
        return made.postprocess_nodes(given, query_str=query)

    def acall(self, made: Any, query: Any, given: Sequence[Any]) -> Awaitable[Any]:
        return made.apostprocess_nodes(given, query_str=query)


HOLDING = [LangChainRetrieverHost(), LlamaIndexRetrieverHost()]
ALL = [*HOLDING, CompressorHost(), PostprocessorHost()]


def _name(host: object) -> str:
    return type(host).__name__.removesuffix("Host")


all_four = pytest.mark.parametrize("host", ALL, ids=_name)
both_retrievers = pytest.mark.parametrize("host", HOLDING, ids=_name)


class WordScorer(Scorer):
    """Scores a unit by the words that it shares with the query, and by its text.

    No two scores are equal.

    It looks at nothing else, so that its scores are the same for one text and for
    another that holds it.
    """

    def __init__(self) -> None:
        self.calls = 0

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        self.calls += 1
        return np.array(
            [self.logit(query, text[unit.start : unit.end]) for unit in units],
            np.float32,
        )

    @staticmethod
    def logit(query: str, sentence: str) -> float:
        words = set(re.findall(r"\w+", sentence.lower()))
        noise = int(
            hashlib.sha256(
                " ".join(sentence.split()).encode(errors="replace")
            ).hexdigest()[:6],
            16,
        )
        return (
            len(words & set(re.findall(r"\w+", query.lower()))) - 2 + noise / 16**6 / 2
        )

    def count_tokens(self, text: str) -> int:
        return len(text.split())


class Slow(WordScorer):
    """Takes texts one by one, can be cancelled, and signals its begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 500
        self.began, self.ended, self.cancelled = (
            threading.Event(),
            threading.Event(),
            False,
        )

    def score_units_many(
        self, requests: Any, *, collection: Any = None, cancelled: Any = never
    ) -> list[UnitScores]:
        self.began.set()
        try:
            for _ in range(self.rounds):
                if cancelled():
                    self.cancelled = True
                    raise ScanCancelled("cancelled")
                threading.Event().wait(0.01)
            return [UnitScores(self.score_units(*request)) for request in requests]
        finally:
            self.ended.set()


class Uncounted(Scorer):
    """Scores sentences in descending order, and counts no tokens.

    Keeps the texts that it was given.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []

    def score_units(
        self, query: str, text: str, units: Sequence[Any]
    ) -> NDArray[np.float32]:
        self.texts.append(text)
        return -np.arange(len(units), dtype=np.float32)


class Reader(Scorer):
    """The logit is the number of words that a unit shares with the query.

    Keeps texts and collection sizes.
    """

    uses_collection = True

    def __init__(self) -> None:
        self.read: list[str] = []
        self.units_of_collection: list[int] = []

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        return self.score_units_many([(query, text, units)])[0].logits

    def score_units_many(
        self,
        requests: Sequence[Any],
        *,
        collection: CollectionIndex | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> list[UnitScores]:
        self.read += [text for _, text, _ in requests]
        self.units_of_collection.append(
            -1 if collection is None else collection.n_units
        )
        words = set(requests[0][0].lower().strip("?").split())
        scores = []
        for _, text, units in requests:
            read = [set(text[unit.start : unit.end].lower().split()) for unit in units]
            logits = np.array([len(words & own) for own in read], np.float32)
            scores.append(UnitScores(logits))
        return scores


class EventLoop:
    """Reports to blocking work whether the event loop still runs other tasks."""

    def __init__(self) -> None:
        self._asked, self._answered = threading.Event(), threading.Event()

    def runs(self) -> bool:
        """Whether another task gets an answer while this call waits."""
        self._answered.clear()
        self._asked.set()
        return self._answered.wait(10)

    async def beside(self, work: Awaitable[Any]) -> Any:
        """The result of ``work``, run beside a task that answers."""

        async def answer() -> None:
            while True:
                await asyncio.sleep(0.002)
                if self._asked.is_set():
                    self._asked.clear()
                    self._answered.set()

        answering = asyncio.create_task(answer())
        try:
            return await work
        finally:
            answering.cancel()
