"""What fixed numbers of sentences, an adaptive number and diversity find, and how many tokens they take."""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.lab.evidence.sampling import sample_questions
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scanner import Scanner

CHOICES: dict[str, dict[str, int | float | str]] = {
    **{f"top_k={k}": {"top_k": k} for k in (1, 2, 3, 5, 10, 20, 50)},
    **{f"top_k={name!r}": {"top_k": name} for name in ("elbow", "elbow:3-50", "elbow:5-50", "elbow:10-50")},
    **{f"top_k=10, diversity={d}": {"top_k": 10, "diversity": d} for d in (0.9, 0.7, 0.5)},
}


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> list[argparse.ArgumentParser]:
    """Add `how-many`."""
    command = commands.add_parser(
        "how-many", help="recall and tokens of fixed and adaptive numbers of sentences"
    )
    command.add_argument("--data", type=Path, nargs="+", required=True, metavar="FILE")
    command.add_argument("--questions", type=int, default=150, help="questions of each source")
    command.set_defaults(measure=measure_how_many)
    return [command]


def measure_how_many(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Macro means over sources, in percent; there are no bounds."""
    found: dict[str, dict[str, list[tuple[float, float, float]]]] = {name: {} for name in CHOICES}
    questions = 0
    for source, result, relevant in _scanned(arguments.data, arguments.questions):
        questions += 1
        assert result.count_tokens is not None
        for name, choice in CHOICES.items():
            picks = result.picks(Selection(**choice))  # type: ignore[arg-type]
            text = "\n".join(result.sentences[number].text for number in sorted(picks.tolist()))
            recall = float(relevant[picks].sum() / relevant.sum())
            own = (recall, float(len(picks)), float(result.count_tokens(text)))
            found[name].setdefault(source, []).append(own)
    rows: dict[str, object] = {}
    for name, sources in found.items():
        recall, sentences, tokens = (
            statistics.mean(statistics.mean(own[column] for own in group) for group in sources.values())
            for column in range(3)
        )
        rows[name] = {
            "recall": 100 * recall,
            "sentences": sentences,
            "tokens": tokens,
            "recall/100 tokens": 1e4 * recall / tokens,
        }
    return {"questions": questions, **rows}, True


def _scanned(data: list[Path], questions: int) -> Iterator[tuple[str, ScanResult, NDArray[np.bool_]]]:
    """The source, the result and the evidence sentences, (sentences,), of each question."""
    scanner = Scanner.from_pretrained()
    for source, asked in sample_questions(list(read_documents(data)), questions).items():
        for document, question in asked:
            result = scanner.scan(question.text, document.text)
            relevant = relevant_units(*Spans(result.starts, result.ends), question.evidence)
            if relevant.any():
                yield source, result, relevant
