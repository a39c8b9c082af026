"""Odd collections in the classes of both frameworks: a clear error or the documented result, nothing lost."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document, NodeWithScore

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaRetriever
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.units import Unit

QUERY = "When does the viper sleep?"

Ask = Callable[..., list[str]]


class Shared:
    """Logit: the words that a unit shares with the query."""

    def __init__(self) -> None:
        self.characters = 0

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> np.ndarray:
        self.characters += len(text)
        words = set(query.lower().strip("?").split())
        return np.array([len(words & set(u.model_text.lower().split())) for u in units], np.float32)


def langchain_retriever(texts: Sequence[str], query: str = QUERY, **options: Any) -> list[str]:
    return [d.page_content for d in SPScannerRetriever.from_texts(texts, **options).invoke(query)]


def langchain_compressor(texts: Sequence[str], query: str = QUERY, **options: Any) -> list[str]:
    documents = [LangChainDocument(text) for text in texts]
    return [d.page_content for d in SPScannerCompressor(**options).compress_documents(documents, query)]


def llama_retriever(texts: Sequence[str], query: str = QUERY, **options: Any) -> list[str]:
    retriever = LlamaRetriever.from_documents([Document(text=text) for text in texts], **options)
    return [n.node.get_content() for n in retriever.retrieve(query)]


def llama_postprocessor(texts: Sequence[str], query: str = QUERY, **options: Any) -> list[str]:
    nodes = [NodeWithScore(node=Document(text=text)) for text in texts]
    post = SPScannerPostprocessor(**options)
    return [n.node.get_content() for n in post.postprocess_nodes(nodes, query_str=query)]


RETRIEVERS = [langchain_retriever, llama_retriever]
ALL = pytest.mark.parametrize("ask", [*RETRIEVERS, langchain_compressor, llama_postprocessor])


@ALL
@pytest.mark.parametrize("texts", [[], [""], ["", " \n", "\t"]])
def test_nothing_to_read_loads_no_model(ask: Ask, texts: list[str]) -> None:
    assert ask(texts, model="no/such-model") == []


@ALL
def test_empty_documents_among_others(ask: Ask, tiny_scanner: Scanner) -> None:
    found = ask(["", "The viper sleeps. It is a snake.", "", " ", "Soup."], scanner=tiny_scanner)
    assert sorted(found) == ["It is a snake.", "Soup.", "The viper sleeps."]


@ALL
@pytest.mark.parametrize("texts", [["The viper sleeps"], ["The viper sleeps", "Soup"], ["7"]])
def test_a_collection_of_a_sentence_or_two(ask: Ask, texts: list[str], tiny_scanner: Scanner) -> None:
    assert sorted(ask(texts, scanner=tiny_scanner)) == sorted(texts)


@ALL
@pytest.mark.parametrize("query", ["zzzz", "?!", "\ud800", "the " * 500])
def test_queries_that_share_no_word_or_little(ask: Ask, query: str, tiny_scanner: Scanner) -> None:
    texts = [f"The viper {number} sleeps." for number in range(12)]
    found = ask(texts, query, scanner=tiny_scanner)
    assert len(found) == (10 if ask in RETRIEVERS else 12)


@ALL
def test_odd_characters(ask: Ask, tiny_scanner: Scanner) -> None:
    texts = ["The viper \ud800 sleeps.", "\ud800", "\x00 \u202e snake.", "\x1b[31m x" + "\u0301" * 300]
    assert sorted(ask(texts, scanner=tiny_scanner)) == sorted(texts)


@pytest.mark.parametrize("ask", RETRIEVERS)
def test_a_large_document_among_small_ones_is_not_read_for_a_word_that_all_have(ask: Ask) -> None:
    scorer = Shared()
    tiny = [f"Note {number} on the viper." for number in range(300)]
    large = ("river " * 99 + "mill. ") * 5_000  # 3 MB
    found = ask([*tiny, large], scorer=scorer)
    assert len(found) == 10
    assert set(found) <= set(tiny)
    assert scorer.characters < 1_000
    (best,) = ask([*tiny, large + "A lynx came. "], "Which lynx came?", scorer=scorer, **only_one(ask))
    assert best == "A lynx came."


def only_one(ask: Ask) -> dict[str, Any]:
    return {"k": 1} if ask is langchain_retriever else {"similarity_top_k": 1}


@pytest.mark.slow
@pytest.mark.parametrize("ask", RETRIEVERS)
def test_100_000_documents(ask: Ask) -> None:
    texts = [f"Note {number} on the viper." for number in range(100_000)]
    assert "Note 77777 on the viper." in ask(texts, "Which note is 77777?", scorer=Shared())


def test_two_documents_with_one_id() -> None:
    """An error in LangChain, where nothing says which is newer; in LlamaIndex the later one replaces the other."""
    texts = ["The viper sleeps.", "The soup is hot."]
    with pytest.raises(ValueError, match="two different documents with the id 'a'"):
        SPScannerRetriever.from_texts(texts, ids=["a", "a"], scorer=Shared())
    again = SPScannerRetriever.from_texts(texts[:1] * 2, ids=["a", "a"], scorer=Shared())
    assert [d.page_content for d in again.invoke(QUERY)] == texts[:1]
    retriever = LlamaRetriever([Document(text=text, id_="a") for text in texts], scorer=Shared())
    assert [n.node.get_content() for n in retriever.retrieve(QUERY)] == texts[1:]
    with pytest.raises(ValueError, match="two texts with the id 'a'"):
        LlamaRetriever([], documents=[Document(text=text, id_="a") for text in texts])


@pytest.mark.parametrize("name", ["manifest.json", "documents.jsonl", "units.npy"])
def test_a_damaged_folder_is_named_by_both_and_nothing_is_lost(name: str, tmp_path: Path) -> None:
    texts = ["The viper sleeps.", "The soup is hot."]
    both: list[tuple[Any, Any]] = [
        (SPScannerRetriever, SPScannerRetriever.from_texts(texts, scorer=Shared())),
        (LlamaRetriever, LlamaRetriever([Document(text=text) for text in texts], scorer=Shared())),
    ]
    for number, (kind, retriever) in enumerate(both):
        folder = tmp_path / str(number)
        retriever.persist(folder)
        (place,) = folder.glob(f"*{name}")
        content = place.read_bytes()
        place.write_bytes(content[:-9] + b"?")
        with pytest.raises(ValueError, match=name):
            kind.load(folder, scorer=Shared())
        place.write_bytes(content)
        kind.load(folder, scorer=Shared())
    with pytest.raises(ValueError, match="got documents of 'langchain'"):
        LlamaRetriever.load(tmp_path / "0")
    with pytest.raises(ValueError, match="got documents of 'llama-index'"):
        SPScannerRetriever.load(tmp_path / "1")


@ALL
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device is 'gpu'; expected 'auto', 'cpu'"),
        ({"dtype": "float64"}, "dtype is 'float64'; expected 'auto'"),
        ({"backend": "triton"}, "backend is 'triton'; expected 'auto'"),
        ({"model": "/no/such/folder"}, "/no/such/folder: no such folder"),
        (
            {"model": "my-scanner"},
            "my-scanner: no such folder; expected the folder of a checkpoint, or a Hub id",
        ),
    ],
)
def test_unknown_names_are_told_at_construction(ask: Ask, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        ask([], **options)  # without a text nothing is loaded
