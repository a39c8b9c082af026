"""Hosts that rerank by Cohere's or text-embeddings-inference's form, each with its real package."""

from typing import Any

import cohere
import pytest

from spscanner_rag import Scanner
from tests.apps.serving.test_routes import QUERY, TEXTS

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
DOCUMENTS = [text for text in TEXTS if text]


@pytest.fixture(scope="module")
def ranked(tiny_scanner: Scanner) -> list[str]:
    """The texts as the scanner itself ranks them."""
    return [one.text for one in tiny_scanner.rank(QUERY, DOCUMENTS)]


@pytest.mark.parametrize(
    ("provider", "route"),
    [("cohere", "v1/rerank"), ("cohere", "v2/rerank"), ("text-embeddings-inference", "rerank")],
)
def test_rerankers(address: str, ranked: list[str], provider: str, route: str) -> None:
    kind = pytest.importorskip("rerankers.models.api_rankers").APIRanker
    ranker = kind("any", "key", provider, url=f"{address}/{route}")
    found = ranker.rank(QUERY, DOCUMENTS)
    assert [one.document.text for one in found.results] == ranked
    assert all(0 <= one.score <= 1 for one in found.results)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_lancedb(address: str, ranked: list[str]) -> None:
    kind = pytest.importorskip("lancedb.rerankers").CohereReranker
    pyarrow = pytest.importorskip("pyarrow")
    found = pyarrow.table({"text": DOCUMENTS, "_distance": [0.1, 0.2, 0.3]})
    reranker = kind(api_key="key")
    reranker._client = cohere.Client("key", base_url=address)  # as with CO_API_URL, read when it is imported
    result = reranker.rerank_vector(QUERY, found)
    assert result["text"].to_pylist() == ranked
    assert result["_relevance_score"].to_pylist() == sorted(result["_relevance_score"].to_pylist())[::-1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [None, 5])
def test_litellm(address: str, ranked: list[str], most: int | None) -> None:
    rerank: Any = pytest.importorskip("litellm").rerank
    answer = rerank("cohere/any", QUERY, DOCUMENTS, api_base=address, api_key="key", max_tokens_per_doc=most)
    found = [DOCUMENTS[one["index"]] for one in answer.results]
    assert sorted(found) == sorted(ranked)
    if most is None:
        assert found == ranked
