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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.scanner_options import add_scanner_options
from spscanner_lab.benchmarks.texts import SyntheticQuestion, synthetic_corpus
from spscanner_rag.results import Selection
from spscanner_rag.retrieval import JoinedText, Piece, ReadBounds, join_pieces
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.first_stage import choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.scored_texts import score_texts

if TYPE_CHECKING:
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.scorers import Read

READ_DOCUMENTS = (5, 10, 20, 50)
SUBSET = 20  # documents that are read instead of all; the time for all is proportional

READS: Sequence[Read] = ("auto", "all", 0)
"""How much of the documents that a first stage chose is read."""

MOST_SECONDS = {"count": 120.0, "encode": 1_800.0, "load": 2.0, "question": 1.0}
"""Bounds of a processor for 1,000 documents of 20,000 characters."""

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
    add_scanner_options(command)
    command.set_defaults(measure=measure_corpus)
    return [command]


@dataclass
class Clock:
    """Seconds since the last step, by the wall and of the processor.

    Other programs lengthen only the former.
    """

    wall: float = field(default_factory=time.perf_counter)
    processor: float = field(default_factory=time.process_time)

    def step(self) -> dict[str, float]:
        """The seconds since the last step, which is now."""
        before = Clock(self.wall, self.processor)
        self.wall = time.perf_counter()
        self.processor = time.process_time()
        return {
            "seconds": self.wall - before.wall,
            "CPU s": self.processor - before.processor,
        }


def measure_corpus(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds of each step.

    The bounds apply to the default size and smaller ones.
    """
    from spscanner_rag.scanner import Scanner

    texts, questions = synthetic_corpus(
        arguments.documents, arguments.characters, arguments.questions
    )
    steps: dict[str, dict[str, float]] = {}
    clock = Clock()
    corpus = HeldTexts().with_texts(joined_texts(texts))
    steps["count"] = clock.step()
    scanner = Scanner.from_pretrained(
        arguments.model, device="cpu", threads=arguments.threads
    )
    scanner.scan(questions[0].query, texts[0])  # the first call is slower
    clock.step()
    corpus.prepare(scanner, range(len(texts)))
    steps["encode"] = clock.step()
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(
            Path(folder), "benchmark", ({"text": text} for text in texts), corpus
        )
        steps["persist"] = clock.step()
        documents, loaded = read_corpus(Path(folder), "benchmark")
        loaded.with_texts(joined_texts([document["text"] for document in documents]))
        steps["load"] = clock.step()
    words = sum(len(text.split()) for text in texts)
    index_bytes = sum(array.nbytes for array in corpus.counts.to_arrays().values())
    rows: dict[str, object] = {
        "words": words,
        "bytes per word of the index": index_bytes / words,
    }
    for name, step in steps.items():
        rows[f"{name} all"] = step
    reads = READS if scanner.reading.sentence_scan is not None else READS[:1]
    for number in READ_DOCUMENTS:
        bounds = ReadBounds(number)
        for read in reads:
            row = _answers(scanner.with_read(read), corpus, questions, bounds)
            rows[f"read_documents={number}, read={read}"] = row
            if number == ReadBounds().read_documents and read == READS[0]:
                steps["question"] = row
    subset = min(SUBSET, len(texts))
    name = f'first_stage="none", from {subset} of {len(texts)} documents'
    clock.step()
    _best_sentences(scanner, questions[0].query, corpus, range(subset))
    step = clock.step()
    rows[name] = {unit: step[unit] * len(texts) / subset for unit in step}
    is_bounded = arguments.documents <= BOUNDED_DOCUMENTS
    is_bounded = is_bounded and arguments.characters <= BOUNDED_CHARACTERS
    return rows, not is_bounded or _is_within_bounds(steps)


def _is_within_bounds(steps: dict[str, dict[str, float]]) -> bool:
    return all(steps[name]["CPU s"] < limit for name, limit in MOST_SECONDS.items())


def joined_texts(texts: Sequence[str]) -> list[JoinedText]:
    """Make a document of each text."""
    pieces = []
    for number, text in enumerate(texts):
        pieces.append(Piece(text=text, key=str(number), source=number, start=0))
    return join_pieces(pieces)


def _answers(
    scanner: Scanner,
    corpus: HeldTexts,
    questions: Sequence[SyntheticQuestion],
    bounds: ReadBounds,
) -> dict[str, float]:
    """Medians over the questions, and how often the right sentence was among them.

    So too for the right document.
    """
    steps: list[dict[str, float]] = []
    first_steps: list[dict[str, float]] = []
    tokens = []
    right_documents = 0
    right_sentences = 0
    for query, right, answer in questions:
        clock = Clock()
        chosen = choose_texts(corpus, query, bounds, load_scorer=lambda: scanner)
        numbers = [number for number, _ in chosen]
        first_steps.append(clock.step())
        sentences = _best_sentences(scanner, query, corpus, numbers)
        steps.append(clock.step())
        tokens.append(sum(corpus.tokens[number] for number in numbers))
        right_documents += right in numbers
        right_sentences += answer in sentences
    return {
        "seconds": _median(first_steps, "seconds") + _median(steps, "seconds"),
        "CPU s": _median(first_steps, "CPU s") + _median(steps, "CPU s"),
        "CPU s of the first stage": _median(first_steps, "CPU s"),
        "tokens of the documents": statistics.median(tokens),
        "document, %": 100 * right_documents / len(questions),
        "answer@10, %": 100 * right_sentences / len(questions),
    }


def _median(steps: Sequence[dict[str, float]], unit: str) -> float:
    return statistics.median(step[unit] for step in steps)


def _best_sentences(
    scanner: Scanner, query: str, corpus: HeldTexts, numbers: Sequence[int]
) -> list[str]:
    """The ten best sentences in some texts."""
    texts = [corpus.texts[number] for number in numbers]
    selection = Selection(top_k=10, order="score")
    scored = score_texts(
        scanner,
        query,
        texts,
        selection,
        collection=corpus.collection,
        prepare=corpus.prepared,
    )
    return [hit.text for hit in scored.hits(selection)]
