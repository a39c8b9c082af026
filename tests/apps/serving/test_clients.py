"""Rerankers that people have, pointed at a real server: each gives the scanner's own ranking."""

from importlib.util import find_spec
from typing import Any

import pytest

from spscanner_rag import Scanner

QUERY = "Who signed the treaty?"
TEXTS = [
    "The bell rang. It rained for a week.",
    "The keeper wrote the date in the book. The captain signed the treaty and left.",
    "The well was dry. The treaty was never signed by the keeper. He left.",
]

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    # these clients leave their connections open
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def needs(*names: str) -> Any:
    missing = [name for name in names if find_spec(name.partition(".")[0]) is None or find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture(scope="module")
def order(tiny_scanner: Scanner) -> list[str]:
    """The texts, best first, as the scanner itself ranks them."""
    return [TEXTS[one.number] for one in tiny_scanner.rank(QUERY, TEXTS)]


@needs("langchain_cohere")
def test_langchain_s_cohere_rerank(address: str, order: list[str]) -> None:
    import cohere
    from langchain_cohere import CohereRerank
    from langchain_core.documents import Document

    client = cohere.ClientV2("key", base_url=address)
    reranker = CohereRerank(client=client, model="any", top_n=3)
    found = reranker.compress_documents([Document(text) for text in TEXTS], QUERY)
    assert [document.page_content for document in found] == order
    scores = [document.metadata["relevance_score"] for document in found]
    assert scores == sorted(scores, reverse=True)


@needs("llama_index.postprocessor.cohere_rerank")
def test_llamaindex_s_cohere_rerank(address: str, order: list[str]) -> None:
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.postprocessor.cohere_rerank import CohereRerank

    reranker = CohereRerank(api_key="key", base_url=address, model="any", top_n=3)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    assert [node.text for node in reranker.postprocess_nodes(nodes, query_str=QUERY)] == order


@needs("llama_index.postprocessor.tei_rerank")
def test_llamaindex_s_tei_rerank(address: str, order: list[str]) -> None:
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

    reranker = TextEmbeddingInference(base_url=address, top_n=3, model_name="any")
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    assert [node.text for node in reranker.postprocess_nodes(nodes, query_str=QUERY)] == order


@needs("litellm")
def test_litellm(address: str, order: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks a server for prices
    import litellm

    answer = litellm.rerank(
        model="cohere/any", query=QUERY, documents=TEXTS, top_n=3, api_base=address, api_key="key"
    )
    assert [TEXTS[result["index"]] for result in answer.results] == order
