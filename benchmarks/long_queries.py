"""What questions of many words cost the scanner, and what they do to its recall."""

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.lab.evaluation.statistics import Sample, paired_test
from spscanner_rag.lab.evidence.questions import Document, read_documents
from spscanner_rag.lab.evidence.sampling import sample_questions
from spscanner_rag.results import Selection
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scan.prepare import repeats_every
from spscanner_rag.scanner import Scanner

WORDS = (0, 50, 200, 500, 1000, 2000)
DEFAULT = "default"


class _Asked(NamedTuple):
    """One question after some words of another document, and what a scanner made of it."""

    source: str
    doc_id: str
    recall: float  # of the evidence, in the best ten sentences
    tokens: int  # of the question
    read: float  # tokens that the model read for each token of the document
    seconds: float


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> list[argparse.ArgumentParser]:
    """Add `long-queries`."""
    command = commands.add_parser("long-queries", help="the scanner on questions of 50 to 2,000 words")
    command.add_argument("--data", type=Path, nargs="+", required=True, metavar="FILE")
    command.add_argument("--questions", type=int, default=20, help="questions of each source")
    command.add_argument("--words", type=int, nargs="+", default=WORDS, help="words before the question")
    command.add_argument(
        "--models", nargs="+", default=[DEFAULT], help="checkpoints; each is compared with the first"
    )
    command.set_defaults(measure=measure_long_queries)
    return [command]


def measure_long_queries(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Each question after so many words of another document of its source; there are no bounds."""
    scanners = {name: Scanner.from_pretrained(None if name == DEFAULT else name) for name in arguments.models}
    documents = list(read_documents(arguments.data))
    rows: dict[str, object] = {}
    for words in arguments.words:
        first: list[_Asked] = []
        for name, scanner in scanners.items():
            asked = list(_asked(scanner, documents, arguments.questions, words))
            row: dict[str, object] = {
                "query tokens": statistics.mean(each.tokens for each in asked),
                "recall@10": 100 * statistics.mean(each.recall for each in asked),
                "read/tokens": statistics.mean(each.read for each in asked),
                "seconds": statistics.mean(each.seconds for each in asked),
                "questions": len(asked),
            }
            if first:
                test = paired_test(_samples(asked), _samples(first), "micro")
                row |= {"minus first": 100 * test.difference.value, "p": test.p_value}
            first = first or asked
            rows[f"{name}, +{words} words" if len(scanners) > 1 else f"+{words} words"] = row
    return rows, True


def _asked(scanner: Scanner, documents: list[Document], most: int, words: int) -> Iterator[_Asked]:
    """Up to ``most`` questions of each source; those without an evidence sentence are left out."""
    reanchor = scanner.reading.reanchor_tokens
    others: dict[str, list[str]] = {}
    for document in documents:
        others.setdefault(document.source, []).append(document.text)
    for source, sampled in sample_questions(documents, most).items():
        for number, (document, question) in enumerate(sampled):
            other = next(t for t in others[source][number:] + others[source] if t != document.text)
            query = " ".join([*other.split()[:words], question.text])
            begun = time.perf_counter()
            result = scanner.scan(query, document.text)
            seconds = time.perf_counter() - begun
            relevant = relevant_units(*Spans(result.starts, result.ends), question.evidence)
            if not relevant.any():
                continue
            tokens, own = scanner.count_tokens(document.text), scanner.count_tokens(query) + 1
            every = repeats_every(reanchor, own)
            read = (tokens + own * (1 + (tokens // every if every else 0))) / tokens
            recall = float(relevant[result.picks(Selection(top_k=10))].sum() / relevant.sum())
            yield _Asked(source, document.doc_id, recall, own, read, seconds)


def _samples(asked: list[_Asked]) -> dict[str, Sample]:
    """The recalls by source."""
    by_source: dict[str, list[_Asked]] = {}
    for each in asked:
        by_source.setdefault(each.source, []).append(each)
    return {
        source: Sample([each.recall for each in found], [each.doc_id for each in found])
        for source, found in by_source.items()
    }
