"""A question over many documents: counts, persists and loads the words of all, and reads some of them."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import Asked, synthetic_corpus
from spscanner_rag.retrieval import JoinedText, Piece, join_pieces
from spscanner_rag.retrieval.corpus import Corpus, read_corpus, write_corpus
from spscanner_rag.retrieval.held import ReadBounds, choose_texts
from spscanner_rag.retrieval.search import Selection, score

if TYPE_CHECKING:
    from spscanner_rag.scanner import Scanner

READ_DOCUMENTS = (5, 10, 20, 50)
SUBSET = 20  # documents that are read instead of all; the time for all is proportional
MOST_SECONDS = {"count": 120.0, "encode": 900.0, "load": 2.0, "question": 10.0}
"""Bounds for 1,000 documents of 20,000 characters on 2 cores."""


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `corpus`."""
    command = commands.add_parser(
        "corpus", help="seconds of a question over many documents, and of their index"
    )
    command.add_argument("--documents", type=int, default=1000)
    command.add_argument(
        "--characters", type=int, default=20_000, help="length of each document"
    )
    command.add_argument("--questions", type=int, default=5)
    command.add_argument("--device", default="cpu")
    command.set_defaults(measure=measure_corpus)
    return [command]


def measure_corpus(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds of each step; the bounds apply to the default size and smaller ones."""
    from spscanner_rag.scanner import Scanner

    texts, asked = synthetic_corpus(
        arguments.documents, arguments.characters, arguments.questions
    )
    seconds, start = {}, time.perf_counter()
    corpus = Corpus().with_texts(joined_texts(texts))
    seconds["count"] = time.perf_counter() - start
    scanner = Scanner.from_pretrained(device=arguments.device)
    scanner.scan(asked[0].query, texts[0])  # the first call is slower
    start = time.perf_counter()
    if scanner.meaning is not None:
        corpus.encoded(scanner.meaning, range(len(texts)))
    seconds["encode"] = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        seconds["persist"], seconds["load"] = _kept(Path(folder), texts, corpus)
    words = sum(len(text.split()) for text in texts)
    n_bytes = sum(array.nbytes for array in corpus.counts.to_arrays().values())
    rows: dict[str, object] = {
        "words": words,
        "bytes per word of the index": n_bytes / words,
    }
    rows |= {f"seconds, {name} all": value for name, value in seconds.items()}
    for n_documents in READ_DOCUMENTS:
        bounds = ReadBounds(n_documents)
        rows[f"read_documents={n_documents}"] = row = _answered(
            scanner, corpus, asked, bounds
        )
        if n_documents == ReadBounds().read_documents:
            seconds["question"] = row["seconds"]
    subset = min(SUBSET, len(texts))
    start = time.perf_counter()
    _read(scanner, asked[0].query, corpus, range(subset))
    whole = (time.perf_counter() - start) * len(texts) / subset
    rows[f'seconds, first_stage="none", from {subset} of {len(texts)} documents'] = (
        whole
    )
    bounded = arguments.documents <= 1000 and arguments.characters <= 20_000
    return rows, not bounded or all(
        seconds[name] < most for name, most in MOST_SECONDS.items()
    )


def joined_texts(texts: Sequence[str]) -> list[JoinedText]:
    """Make a document of each text."""
    return join_pieces(
        [
            Piece(text=text, key=str(n), source=n, start=0)
            for n, text in enumerate(texts)
        ]
    )


def _kept(folder: Path, texts: Sequence[str], corpus: Corpus) -> tuple[float, float]:
    """Seconds to persist the documents, and seconds to load them with their counts."""
    start = time.perf_counter()
    write_corpus(folder, "benchmark", ({"text": text} for text in texts), corpus)
    persisted = time.perf_counter()
    documents, loaded = read_corpus(folder, "benchmark")
    loaded.with_texts(joined_texts([document["text"] for document in documents]))
    return persisted - start, time.perf_counter() - persisted


def _answered(
    scanner: Scanner, corpus: Corpus, asked: Sequence[Asked], bounds: ReadBounds
) -> dict[str, float]:
    """Medians over the questions, and the share that found the document and the sentence."""
    seconds, choosing, tokens, found, first = [], [], [], 0, 0
    for query, right, answer in asked:
        start = time.perf_counter()
        numbers = [
            number
            for number, _ in choose_texts(
                corpus, query, bounds, meaning=lambda: scanner.meaning
            )
        ]
        choosing.append(time.perf_counter() - start)
        best = _read(scanner, query, corpus, numbers)
        seconds.append(time.perf_counter() - start)
        tokens.append(sum(corpus.tokens[number] for number in numbers))
        found += right in numbers
        first += answer in best
    return {
        "seconds": statistics.median(seconds),
        "first stage": statistics.median(choosing),
        "tokens read": statistics.median(tokens),
        "document, %": 100 * found / len(asked),
        "answer@10, %": 100 * first / len(asked),
    }


def _read(
    scanner: Scanner, query: str, corpus: Corpus, numbers: Sequence[int]
) -> list[str]:
    """The ten best sentences in some texts."""
    texts: list[JoinedText] = [corpus.texts[number] for number in numbers]
    chosen = Selection(top_k=10)
    hits = score(scanner, query, texts, chosen, collection=corpus.collection).hits(
        chosen
    )
    return [hit.text for hit in hits]
