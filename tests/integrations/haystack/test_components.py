"""Haystack's components in real pipelines."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack", reason="the extra haystack is not installed")

from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.preprocessors import DocumentSplitter
from haystack.core.errors import SerializationError

from haystack_integrations.components.spscanner import (
    SPScannerExtractor,
    SPScannerRanker,
)
from spscanner_rag.retrieval.scorer_choice import ScorerChoice
from tests.integrations.hosts import HARBOUR, ISLAND, WordScorer

QUESTION = "Who signed the treaty on the island?"
MOORE = "Captain Moore signed the treaty on the island."
KINDS = [SPScannerRanker, SPScannerExtractor]


def documents() -> list[Document]:
    return [
        Document(
            id="harbour", content=HARBOUR, meta={"file": "harbour.txt"}, score=0.9
        ),
        Document(
            id="island",
            content=ISLAND,
            meta={"file": "island.txt", "tags": ["sea"]},
            score=0.1,
        ),
        Document(id="image", content=None, meta={"file": "a.png"}, score=0.5),
    ]


async def asked(
    kind: Any, how: str, given: list[Document], query: str = QUESTION, **options: Any
) -> list[Document]:
    """The result of a pipeline with one component."""
    pipeline = Pipeline()
    pipeline.add_component("own", kind(**{"scorer": WordScorer()} | options))
    data = {"own": {"query": QUESTION, "documents": given}}
    found = pipeline.run(data) if how == "run" else await pipeline.run_async(data)
    return list(found["own"]["documents"])


@pytest.mark.parametrize("how", ["run", "run_async"])
async def test_documents_are_ranked_by_their_best_sentence_and_none_is_lost(
    how: str,
) -> None:
    given = documents()
    ranked = await asked(SPScannerRanker, how, given, keep_retrieval_score=True)
    assert [one.id for one in ranked] == ["island", "harbour", "image"]
    assert [one.content for one in ranked] == [ISLAND, HARBOUR, None]
    scores = [one.score for one in ranked]
    assert scores[2] is None
    assert 1 > scores[0] > scores[1] > 0  # type: ignore[operator]
    assert ranked[0].meta["spscanner_retrieval_score"] == 0.1
    assert given == documents()
    assert [one.id for one in await asked(SPScannerRanker, how, given, top_k=1)] == [
        "island"
    ]


@pytest.mark.parametrize("how", ["run", "run_async"])
async def test_sentences_are_extracted_with_their_places(how: str) -> None:
    given = documents()
    found = await asked(SPScannerExtractor, how, given, top_k=3)
    assert found[0].content == MOORE
    texts = {"harbour": HARBOUR, "island": ISLAND}
    for one in found:
        meta = one.meta
        text = texts[meta["source_id"]]
        assert text[meta["split_idx_start"] : meta["split_idx_end"]] == one.content
        assert (
            one.id
            == f"{meta['source_id']}:{meta['split_idx_start']}-{meta['split_idx_end']}"
        )
    assert found[0].meta["tags"] == ["sea"]
    found[0].meta["tags"].append("mine")
    assert given == documents()
    assert [
        one.content for one in await asked(SPScannerExtractor, how, given, top_k=3)
    ] == [one.content for one in found]
    pruned = await asked(SPScannerExtractor, how, given, top_k=1, return_nodes="pruned")
    assert [(one.id, one.content) for one in pruned] == [("island", MOORE)]


async def test_chunks_of_haystacks_splitters_are_read_as_one_text() -> None:
    splitter = DocumentSplitter(split_by="word", split_length=7, split_overlap=2)
    chunks = splitter.run(documents()[:2])["documents"]
    assert len(chunks) > 6
    found = await asked(SPScannerExtractor, "run", chunks[::-1], top_k=2)
    assert found[0].content == MOORE
    assert (
        found[0].id
        == f"island:{ISLAND.index(MOORE)}-{ISLAND.index(MOORE) + len(MOORE)}"
    )
    ranked = await asked(SPScannerRanker, "run", chunks, top_k=None)
    assert {one.id for one in ranked} == {one.id for one in chunks}
    assert ranked[0].meta["source_id"] == "island"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_document_twice_counts_once(kind: Any) -> None:
    given = documents()
    assert await asked(kind, "run", given + given) == await asked(kind, "run", given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "given", [[], [Document(content="")], [Document(content=" \n ")]]
)
def test_without_text_no_model_is_loaded(kind: Any, given: list[Document]) -> None:
    found = kind(model="nobody/nothing").run(QUESTION, given)["documents"]
    assert [one.content for one in found] == (
        [one.content for one in given] if kind is SPScannerRanker else []
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_an_empty_query_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="query"):
        kind(scorer=WordScorer()).run(" ", documents())


def test_a_pipeline_is_written_and_made_again(tiny_checkpoint: Path) -> None:
    pipeline = Pipeline()
    pipeline.add_component(
        "ranker", SPScannerRanker(top_k=2, model=tiny_checkpoint, device="cpu")
    )
    options: Any = {"token": "secret", "local_files_only": True}
    pipeline.add_component(
        "extractor",
        SPScannerExtractor(
            top_k="elbow:1-2", model=str(tiny_checkpoint), model_kwargs=options
        ),
    )
    pipeline.add_component(
        "prompt",
        PromptBuilder("{% for one in documents %}{{ one.content }}|{% endfor %}"),
    )
    pipeline.connect("ranker", "extractor")
    pipeline.connect("extractor", "prompt")
    written = pipeline.dumps()
    assert "secret" not in written
    again = Pipeline.loads(written)
    assert sorted(again.dumps().splitlines()) == sorted(written.splitlines())
    asked = {
        "ranker": {"query": QUESTION, "documents": documents()},
        "extractor": {"query": QUESTION},
    }
    prompt = again.run(asked)["prompt"]["prompt"]
    assert prompt == pipeline.run(asked)["prompt"]["prompt"]
    assert 1 <= prompt.count("|") <= 2


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": WordScorer()},
        {"count_tokens": len, "max_tokens": 5},
        {"scanner": None, "prompt": print},
    ],
)
def test_what_cannot_be_written_is_named(options: dict[str, Any]) -> None:
    pipeline = Pipeline()
    pipeline.add_component("own", SPScannerExtractor(**options))
    with pytest.raises((ValueError, SerializationError)):
        pipeline.dumps()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{"top_k": 0}, {"threshold": 2}, {"modle": "a"}, {"device": "abacus"}]
)
def test_a_wrong_argument_is_named(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        kind(**options)


def test_warming_up_loads_the_model(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []
    monkeypatch.setattr(ScorerChoice, "resolve", lambda own: loaded.append(own.model))
    SPScannerRanker(model=tiny_checkpoint).warm_up()
    assert loaded == [tiny_checkpoint]
