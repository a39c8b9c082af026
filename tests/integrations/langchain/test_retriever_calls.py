"""Arguments of a call, events, and asynchronous calls."""

import asyncio
import re
from typing import Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from langchain_spscanner import SPScannerRetriever

QUERY = "Who signed the treaty?"


def call(retriever: Any, asynchronous: bool, *args: Any, **kwargs: Any) -> Any:
    return (
        asyncio.run(retriever.ainvoke(*args, **kwargs))
        if asynchronous
        else retriever.invoke(*args, **kwargs)
    )


class Stage(BaseRetriever):
    """A first stage that records how it was called."""

    found: list[Document]
    seen: list[str]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.seen.append("sync")
        return self.found

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        self.seen.append("async")
        return self.found


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asynchronous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_arguments_of_a_call(
    word_scorer: Any, documents: list[Document], asynchronous: bool
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    assert len(call(retriever, asynchronous, QUERY)) == 10
    assert len(call(retriever, asynchronous, QUERY, k=3)) == 3
    assert len(call(retriever, asynchronous, QUERY, None, k=1)) == 1
    assert 0 < len(call(retriever, asynchronous, QUERY, threshold=0.5)) < 10
    counted = retriever.model_copy(update={"count_tokens": len})
    assert (
        sum(
            len(d.page_content)
            for d in call(counted, asynchronous, QUERY, max_tokens=99)
        )
        <= 99
    )
    assert (
        len(call(retriever, asynchronous, QUERY, verbose=False, k=2)) == 2
    )  # the framework's argument
    assert len(call(retriever.bind(k=4), asynchronous, QUERY)) == 4


@pytest.mark.parametrize(
    ("query", "arguments", "message"),
    [
        (
            QUERY,
            {"top_k": 3},
            "unknown argument 'top_k'; expected k, as it is called here",
        ),
        (QUERY, {"k": 0}, "k: got 0"),
        (QUERY, {"k": "2"}, "k: got '2'"),
        (QUERY, {"threshold": 2}, "threshold: got 2"),
        (QUERY, {"max_tokens": -1}, "max_tokens: got -1"),
        (QUERY, {"filter": 3}, "filter: got int; expected a function of a Document"),
        (
            QUERY,
            {"max_tokens": 9},
            "WordScorer counts no tokens; expected count_tokens",
        ),
        *(
            (query, {}, f"query: got {query!r}; expected a question")
            for query in ("", " \n")
        ),
    ],
)
def test_what_is_refused_before_any_event(
    word_scorer: Any,
    documents: list[Document],
    events: Any,
    asynchronous: bool,
    query: Any,
    arguments: dict[str, Any],
    message: str,
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call(retriever, asynchronous, query, {"callbacks": [events]}, **arguments)
    assert (events.seen, word_scorer.calls) == ([], 0)


def test_one_run(
    word_scorer: Any, documents: list[Document], events: Any, asynchronous: bool
) -> None:
    retriever = SPScannerRetriever.from_documents(
        documents, scorer=word_scorer, tags=["field"], metadata={"owner": "me"}
    )
    found = call(
        retriever.with_config(
            tags=["config"], run_name="facts", metadata={"session": 1}
        ),
        asynchronous,
        QUERY,
        {"callbacks": [events]},
    )
    assert events.seen == ["start", "end"]
    assert events.ends == [found]
    (start,) = events.starts
    assert start["query"] == QUERY
    assert start["name"] == "facts"
    assert set(start["tags"]) == {"field", "config"}
    traced = {"ls_retriever_name": "spscanner", "ls_embedding_model": "WordScorer"}
    empty = SPScannerRetriever.from_documents([], model="no/such-model")
    assert call(empty, asynchronous, QUERY, {"callbacks": [events]}) == []
    assert events.seen == ["start", "end"] * 2
    assert start["metadata"].items() >= (traced | {"owner": "me", "session": 1}).items()


def test_the_first_stage_runs_as_a_child_in_the_same_manner(
    word_scorer: Any, documents: list[Document], events: Any, asynchronous: bool
) -> None:
    stage = Stage(found=documents, seen=[])
    retriever = SPScannerRetriever.from_retriever(stage, scorer=word_scorer)
    call(retriever, asynchronous, QUERY, {"callbacks": [events], "tags": ["mine"]})
    assert stage.seen == ["async" if asynchronous else "sync"]
    assert events.seen == ["start", "start", "end", "end"]
    outer, inner = events.starts
    assert inner["parent_run_id"] == outer["run_id"]
    assert outer["parent_run_id"] is None
    assert "mine" in inner["tags"]


def test_cancelling_during_the_first_stage_scans_nothing(
    word_scorer: Any, events: Any
) -> None:
    async def run() -> None:
        asked = asyncio.Event()

        async def stage(query: str) -> list[Document]:
            asked.set()
            await asyncio.sleep(60)
            return []

        def sync_stage(query: str) -> list[Document]:
            raise AssertionError("called synchronously")

        retriever = SPScannerRetriever.from_retriever(
            RunnableLambda(sync_stage, stage), scorer=word_scorer
        )
        task = asyncio.ensure_future(retriever.ainvoke(QUERY, {"callbacks": [events]}))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert word_scorer.calls == 0
    assert events.seen == ["start", "CancelledError"]
