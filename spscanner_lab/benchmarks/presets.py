"""What the presets of ``keep`` keep: precision, recall and F1 of words."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.scanner_options import add_scanner_options
from spscanner_lab.evidence.acl_verbatim import read_acl_verbatim
from spscanner_lab.evidence.kept_words import KeptWords, kept_words, quality_of
from spscanner_rag.text.keep_scale import Keep

if TYPE_CHECKING:
    from spscanner_lab.evidence.questions import Document, Question
    from spscanner_rag.results import ScanResult
    from spscanner_rag.scanner import Scanner

PROBABILITY = 0.5


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `presets`."""
    command = commands.add_parser(
        "presets", help="what keep= strict, balanced and generous keep"
    )
    add = command.add_argument
    add("--data", nargs="*", type=Path, default=[], help="questions with evidence")
    add("--acl-verbatim", type=Path, help="the gold file of ACL-Verbatim")
    add("--questions", type=int, default=1000, help="at most, of each document")
    add_scanner_options(command)
    command.set_defaults(measure=measure)
    return [command]


def measure(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Rows for each file and preset, and for a probability of one half."""
    from spscanner_lab.evidence.questions import read_documents
    from spscanner_rag.scanner import Scanner

    scanner = Scanner.from_pretrained(arguments.model, threads=arguments.threads)
    rows: dict[str, object] = {}
    for path in arguments.data:
        documents = list(read_documents([path]))
        results = _results(scanner, documents, arguments.questions)
        rows |= _rows(f"{path.parent.name}/{path.name}", results)
    if arguments.acl_verbatim is not None:
        documents = read_acl_verbatim(arguments.acl_verbatim)
        rows |= _rows("ACL-Verbatim", _results(scanner, documents, 1))
    return rows, True


def _results(
    scanner: "Scanner", documents: Sequence["Document"], most_questions: int
) -> Iterator[tuple["Document", "Question", "ScanResult"]]:
    """Results of the first questions of each document that have evidence or none."""
    for document in documents:
        prepared = scanner.prepare(document.text)
        for question in document.questions[:most_questions]:
            yield document, question, scanner.scan(question.text, prepared)


def _rows(
    name: str, results: Iterator[tuple["Document", "Question", "ScanResult"]]
) -> dict[str, object]:
    counts: dict[str, list[KeptWords]] = {}
    doc_ids: list[str] = []
    for document, question, result in results:
        doc_ids.append(document.doc_id)
        for preset in get_args(Keep):
            passages = result.select(top_k=None, keep=preset)
            words = kept_words(document.text, passages, question)
            counts.setdefault(preset, []).append(words)
        passages = result.select(top_k=None, threshold=PROBABILITY)
        words = kept_words(document.text, passages, question)
        counts.setdefault(f"probability {PROBABILITY}", []).append(words)
    rows: dict[str, object] = {}
    for selection, words_of_questions in counts.items():
        quality = quality_of(words_of_questions, doc_ids)
        rows[f"{name}, {selection}"] = quality._asdict()
    return rows
