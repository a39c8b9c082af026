"""How well sentences agree with those that others marked, by language."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from spscanner_lab.benchmarks.report import Commands
from spscanner_rag.text.segmentation import SentenceSegmenter


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `sentence-ends`."""
    command = commands.add_parser(
        "sentence-ends", help="agreement with the sentences of LAReQA's XQuAD-R"
    )
    command.add_argument(
        "files", nargs="+", type=Path, help="SQuAD's JSON with sentence_breaks"
    )
    command.set_defaults(measure=measure_ends)
    return [command]


def measure_ends(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Ends of sentences inside paragraphs: F1, and how many are missed or added."""
    rows: dict[str, object] = {}
    for path in arguments.files:
        n_both = 0
        n_missed = 0
        n_added = 0
        for text, marked in _paragraphs(path):
            cut = {unit.end for unit in SentenceSegmenter().segment(text)}
            cut.discard(len(text.rstrip()))
            n_both += len(marked & cut)
            n_missed += len(marked - cut)
            n_added += len(cut - marked)
        all_ends = 2 * n_both + n_missed + n_added
        rows[path.stem] = {
            "F1, %": 200 * n_both / max(all_ends, 1),
            "marked": n_both + n_missed,
            "missed": n_missed,
            "added": n_added,
        }
    return rows, True


def _paragraphs(path: Path) -> Iterator[tuple[str, set[int]]]:
    """Yield each paragraph with the marked ends of sentences inside it."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            ends = set()
            for start, stop in paragraph["sentence_breaks"]:
                ends.add(start + len(text[start:stop].rstrip()))
            ends.discard(len(text.rstrip()))
            yield text, ends
