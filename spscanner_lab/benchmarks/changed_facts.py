"""Whether the current one of two statements comes first: ``prefer="newest"``."""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.scanner_options import add_scanner_options

if TYPE_CHECKING:
    from spscanner_rag.results import Passage, ScanResult
    from spscanner_rag.results.selection import Prefer

PREFERENCES: "tuple[Prefer | None, ...]" = (None, "newest")


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `changed-facts`."""
    command = commands.add_parser(
        "changed-facts", help='rank 1 in chats with and without prefer="newest"'
    )
    command.add_argument(
        "files", nargs="+", type=Path, help="chats whose questions have a type"
    )
    add_scanner_options(command)
    command.set_defaults(measure=measure)
    return [command]


def measure(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """For each split and type: questions, and those with evidence in first place."""
    from spscanner_rag.scanner import Scanner

    scanner = Scanner.from_pretrained(arguments.model, threads=arguments.threads)
    n_questions: Counter[str] = Counter()
    n_first: dict[str, Counter[str]] = {}
    for path in arguments.files:
        for line in path.read_text(encoding="utf-8").splitlines():
            chat = json.loads(line)
            prepared = scanner.prepare(chat["text"])
            for question in chat["questions"]:
                row = f"{chat['split']}, {question['type']}"
                n_questions[row] += 1
                result = scanner.scan(question["question"], prepared)
                first = _first_places(result, question)
                n_first.setdefault(row, Counter()).update(first)
    rows: dict[str, object] = {}
    for row, n in n_questions.items():
        rows[row] = {"questions": n, **n_first[row]}
    return rows, True


def _first_places(result: "ScanResult", question: dict[str, Any]) -> dict[str, int]:
    """For each preference, 1 if the first sentence has evidence, else 0."""
    first: dict[str, int] = {}
    for preference in PREFERENCES:
        best = result.select(top_k=1, prefer=preference)
        first[f"first, prefer={preference}"] = int(_has_evidence(best, question))
    return first


def _has_evidence(passages: "tuple[Passage, ...]", question: dict[str, Any]) -> bool:
    for start, end in question["evidence"]:
        if any(passage.start < end and start < passage.end for passage in passages):
            return True
    return False
