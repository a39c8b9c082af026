"""A question over many documents, and the index of their words.

The words of all documents are counted, persisted and loaded, and some of the documents
are read.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import SyntheticQuestion, synthetic_corpus
from spscanner_rag.results import Selection
from spscanner_rag.retrieval import JoinedText, Piece, ReadBounds, join_pieces
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.first_stage import choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.scored_texts import score_texts

if TYPE_CHECKING:
    from spscanner_rag.scanner import Scanner

READ_DOCUMENTS = (5, 10, 20, 50)
SUBSET = 20  # documents that are read instead of all; the time for all is proportional

MOST_SECONDS = {"count": 120.0, "encode": 900.0, "load": 2.0, "question": 10.0}
"""Bounds for 1,000 documents of 20,000 characters on 2 cores."""

BOUNDED_DOCUMENTS = 1000
BOUNDED_CHARACTERS = 20_000


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `corpus`."""
    command = commands.add_parser(
        "corpus", help="seconds of a question over many documents, and of their index"
    )
    command.add_argument("--documents", type=int, default=BOUNDED_DOCUMENTS)
    command.add_argument(
        "--characters",
        type=int,
        default=BOUNDED_CHARACTERS,
        help="length of each document",
    )
    command.add_argument("--questions", type=int, default=5)
    command.add_argument("--device", default="cpu")
    command.set_defaults(measure=measure_corpus)
    return [command]


def measure_corpus(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds of each step.

    The bounds apply to the default size and smaller ones.
    """
    from spscanner_rag.scanner import Scanner

    texts, questions = synthetic_corpus(
        arguments.documents, arguments.characters, arguments.questions
    )
    seconds = {}
    start = time.perf_counter()
    corpus = HeldTexts().with_texts(joined_texts(texts))
    seconds["count"] = time.perf_counter() - start
    scanner = Scanner.from_pretrained(device=arguments.device)
    scanner.scan(questions[0].query, texts[0])  # the first call is slower
    start = time.perf_counter()
    corpus.prepare(scanner, range(len(texts)))
    seconds["encode"] = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        persisting, loading = _folder_seconds(Path(folder), texts, corpus)
    seconds["persist"] = persisting
    seconds["load"] = loading
    words = sum(len(text.split()) for text in texts)
    index_bytes = sum(array.nbytes for array in corpus.counts.to_arrays().values())
    rows: dict[str, object] = {
        "words": words,
        "bytes per word of the index": index_bytes / words,
    }
    for name, value in seconds.items():
        rows[f"seconds, {name} all"] = value
    for number in READ_DOCUMENTS:
        bounds = ReadBounds(number)
        row = _answers(scanner, corpus, questions, bounds)
        rows[f"read_documents={number}"] = row
        if number == ReadBounds().read_documents:
            seconds["question"] = row["seconds"]
    subset = min(SUBSET, len(texts))
    name = f'seconds, first_stage="none", from {subset} of {len(texts)} documents'
    start = time.perf_counter()
    _best_sentences(scanner, questions[0].query, corpus, range(subset))
    rows[name] = (time.perf_counter() - start) * len(texts) / subset
    is_bounded = arguments.documents <= BOUNDED_DOCUMENTS
    is_bounded = is_bounded and arguments.characters <= BOUNDED_CHARACTERS
    return rows, not is_bounded or _is_within_bounds(seconds)


def _is_within_bounds(seconds: dict[str, float]) -> bool:
    return all(seconds[name] < limit for name, limit in MOST_SECONDS.items())


def joined_texts(texts: Sequence[str]) -> list[JoinedText]:
    """Make a document of each text."""
    pieces = []
    for number, text in enumerate(texts):
        pieces.append(Piece(text=text, key=str(number), source=number, start=0))
    return join_pieces(pieces)


def _folder_seconds(
    folder: Path, texts: Sequence[str], corpus: HeldTexts
) -> tuple[float, float]:
    """Seconds to persist the documents, and to load them with their counts."""
    start = time.perf_counter()
    write_corpus(folder, "benchmark", ({"text": text} for text in texts), corpus)
    persisted = time.perf_counter()
    documents, loaded = read_corpus(folder, "benchmark")
    loaded.with_texts(joined_texts([document["text"] for document in documents]))
    return persisted - start, time.perf_counter() - persisted


def _answers(
    scanner: Scanner,
    corpus: HeldTexts,
    questions: Sequence[SyntheticQuestion],
    bounds: ReadBounds,
) -> dict[str, float]:
    """Medians over the questions, and how often the right sentence was among them.

    So too for the right document.
    """
    seconds = []
    first_stage_seconds = []
    tokens = []
    right_documents = 0
    right_sentences = 0
    for query, right, answer in questions:
        start = time.perf_counter()
        chosen = choose_texts(corpus, query, bounds, load_scorer=lambda: scanner)
        numbers = [number for number, _ in chosen]
        first_stage_seconds.append(time.perf_counter() - start)
        sentences = _best_sentences(scanner, query, corpus, numbers)
        seconds.append(time.perf_counter() - start)
        tokens.append(sum(corpus.tokens[number] for number in numbers))
        right_documents += right in numbers
        right_sentences += answer in sentences
    return {
        "seconds": statistics.median(seconds),
        "first stage": statistics.median(first_stage_seconds),
        "tokens read": statistics.median(tokens),
        "document, %": 100 * right_documents / len(questions),
        "answer@10, %": 100 * right_sentences / len(questions),
    }


def _best_sentences(
    scanner: Scanner, query: str, corpus: HeldTexts, numbers: Sequence[int]
) -> list[str]:
    """The ten best sentences in some texts."""
    texts = [corpus.texts[number] for number in numbers]
    selection = Selection(top_k=10, order="score")
    scored = score_texts(scanner, query, texts, selection, collection=corpus.collection)
    return [hit.text for hit in scored.hits(selection)]
