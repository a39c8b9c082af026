"""Every baseline in the scanner's place, in the classes of both frameworks."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeWithScore
from tokenizers import Tokenizer

from langchain_spscanner import SPScannerCompressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from spscanner_rag import Scanner
from spscanner_rag.baselines import (
    BM25,
    Cascade,
    CrossEncoder,
    Dense,
    Hybrid,
    LateInteraction,
    Listwise,
    MambaReranker,
    Propositions,
)
from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scorers import Scorer

TEXT = (
    "The keeper wrote the date in his book.  He signed the treaty,\nand the captain left. It rained the "
    "whole night.\n\nThe bell rang twice! Was the well dry? Nobody signed the second treaty."
)
QUERY = "Who signed the treaty?"
NAMES = (
    "bm25",
    "dense",
    "cross_encoder",
    "mamba_reranker",
    "propositions",
    "hybrid",
    "cascade",
    "late_interaction",
    "listwise",
)


def letters(texts: list[str]) -> np.ndarray:
    return np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


def sentences(prompt: str) -> str:
    """What a decomposer may answer: every sentence is a proposition."""
    content = prompt.rsplit("Content:", 1)[-1]
    return "[" + ", ".join(f'"{part.strip()}"' for part in re.split(r"[.!?]", content) if part.strip()) + "]"


@pytest.fixture(scope="module")
def scorers(
    tiny_tokenizer: Tokenizer,
    tiny_scanner: Scanner,
    save_bert: Callable[[Path, int | None], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Scorer]:
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    config = Mamba2Config(
        d_model=16, n_layer=1, vocab_size=tiny_tokenizer.get_vocab_size(), d_state=8, headdim=8
    )
    save_checkpoint(folder / "mamba", ScannerModel(config), ScannerSettings(), tiny_tokenizer)
    return {
        "bm25": BM25(),
        "dense": Dense(letters),
        "cross_encoder": CrossEncoder(save_bert(folder / "bert", 1), device="cpu"),
        "mamba_reranker": MambaReranker(folder / "mamba", device="cpu"),
        "propositions": Propositions(sentences, Dense(letters)),
        "hybrid": Hybrid([tiny_scanner, BM25()]),
        "late_interaction": LateInteraction(save_bert(folder / "tokens", None), device="cpu"),
        "listwise": Listwise(lambda prompt: "[2] > [1]", name="scripted"),
        "cascade": Cascade(BM25(), tiny_scanner, best=2),
    }


@pytest.mark.parametrize("name", NAMES)
def test_langchain_retriever(name: str, scorers: dict[str, Scorer]) -> None:
    retriever = LangChainRetriever.from_texts([TEXT, "Another text. It rained."], scorer=scorers[name], k=3)
    found = retriever.invoke(QUERY)
    assert len(found) == 3
    for document in found:
        start, end = document.metadata["start_index"], document.metadata["end_index"]
        assert document.page_content in (TEXT[start:end], "Another text. It rained."[start:end])
        assert 0 <= document.metadata["relevance_score"] <= 1
    scores = [document.metadata["relevance_score"] for document in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_langchain_compressor(name: str, scorers: dict[str, Scorer]) -> None:
    documents = [LangChainDocument(page_content=TEXT, metadata={"source": "a"})]
    found = SPScannerCompressor(scorer=scorers[name], k=2).compress_documents(documents, QUERY)
    assert len(found) == 2
    for document in found:
        span = slice(document.metadata["start_index"], document.metadata["end_index"])
        assert TEXT[span] == document.page_content


@pytest.mark.parametrize("name", NAMES)
def test_llama_index_retriever(name: str, scorers: dict[str, Scorer]) -> None:
    retriever = LlamaIndexRetriever.from_documents(
        [Document(text=TEXT)], scorer=scorers[name], similarity_top_k=3
    )
    found = retriever.retrieve(QUERY)
    assert len(found) == 3
    for node in found:
        assert TEXT[node.node.start_char_idx : node.node.end_char_idx] == node.node.get_content("none")


@pytest.mark.parametrize("name", NAMES)
def test_llama_index_postprocessor(name: str, scorers: dict[str, Scorer]) -> None:
    document = Document(text=TEXT)
    splitter = SentenceSplitter(chunk_size=24, chunk_overlap=6)
    nodes = [NodeWithScore(node=node, score=0.5) for node in splitter.get_nodes_from_documents([document])]
    assert len(nodes) > 2
    postprocessor = SPScannerPostprocessor(scorer=scorers[name], top_n=3, documents=[document])
    found = postprocessor.postprocess_nodes(nodes, query_str=QUERY)
    assert len(found) == 3
    for node in found:
        assert TEXT[node.node.start_char_idx : node.node.end_char_idx] == node.node.get_content("none")


def test_chunks_of_a_baseline(scorers: dict[str, Scorer]) -> None:
    text = " ".join(f"word{i}" for i in range(700)) + " treaty"
    found = LangChainRetriever.from_texts([text], scorer=BM25("chunk"), k=1).invoke("Where is the treaty?")
    assert len(found[0].page_content.split()) == 101
    assert found[0].page_content.endswith("treaty")
