"""``spscanner from-released``: convert the files that the paper's authors released."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from spscanner_rag.apps.cli.declaring import argument, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.text.escaping import one_line

INCOMPLETE = 3
"""Exit code when records were left out."""

_MOST_TOLD = 5  # bad records whose errors are printed


def from_released(
    files: list[Path] = argument(
        "Released files: training files, .jsonl, or test files, .json.", "FILE..."
    ),
    out: Path = option(..., "Question file to write, .jsonl."),
    tokenizer: Path | None = option(
        None, "tokenizer.json of EleutherAI/gpt-neox-20b, for training files."
    ),
    categories: Path | None = option(
        None, "mambaretriever_test_per_category.json, for test files."
    ),
) -> None:
    """Convert files that the paper's authors released into question files.

    It is for people who have them. Exit code: 0, or 3 if bad records were left out.
    """
    from spscanner_rag.system.outputs import (
        check_outputs,
        check_results_folder,
        files_of_run,
    )
    from spscanner_rag.system.whole_files import whole_file

    inputs = [path for path in (*files, tokenizer, categories) if path is not None]
    check_outputs({"--out": out}, (), inputs)
    check_results_folder(out.parent, files_of_run([out.name]), inputs)
    errors: list[Exception] = []
    lines = chain(
        _training_lines(files, tokenizer, errors),
        _test_lines(files, categories, errors),
    )
    counts = _Counts()
    with whole_file(out) as unfinished:
        _write_lines(counts.of(lines), unfinished)
        for error in errors[:_MOST_TOLD]:
            tell(f"left out: {error}")
        if not counts.questions:
            raise ValueError(f"{files[0]}: no record; expected released data")
    for line in counts.told(one_line(str(out)), len(errors)):
        sys.stdout.write(f"{line}\n")
    if errors:
        raise typer.Exit(INCOMPLETE)


class _Counts:
    """Counts documents and questions as they pass."""

    def __init__(self) -> None:
        self.documents = 0
        self.questions = 0
        self.choices: Counter[str] = Counter()
        self.without_category: Counter[str] = Counter()

    def of(self, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the lines, and count them."""
        from spscanner_lab.synthesis.released_tests import NO_CATEGORY

        for line in lines:
            source = line["source"]
            self.documents += 1
            self.questions += len(line["questions"])
            if line.get("category") == NO_CATEGORY:
                self.without_category[source] += len(line["questions"])
            for question in line["questions"]:
                self.choices[source] += question.get("multiple_choice", False)
            yield line

    def told(self, out: str, left_out: int) -> Iterator[str]:
        """Yield what was converted, as lines for a person."""
        yield (
            f"{self.questions:,} questions on {self.documents:,} documents in {out};"
            f" {left_out:,} bad records left out"
        )
        if +self.choices:
            yield f"judged as multiple choice: {_listed(+self.choices)}"
        if self.without_category:
            yield f'in no category, so in "other": {_listed(self.without_category)}'


def _listed(counts: Counter[str]) -> str:
    names = []
    for name, count in sorted(counts.items()):
        names.append(f"{one_line(name)} ({count:,})")
    return ", ".join(names)


def _training_lines(
    files: Sequence[Path], tokenizer: Path | None, errors: list[Exception]
) -> Iterable[dict[str, Any]]:
    from spscanner_lab.synthesis.released import read_released
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer

    training_files = [path for path in files if path.suffix != ".json"]
    if tokenizer is not None:
        return read_released(training_files, read_tokenizer(tokenizer), errors.append)
    if training_files:
        raise ValueError(
            f"got {training_files[0]}, a training file, without --tokenizer; expected"
            " both"
        )
    return ()


def _test_lines(
    files: Sequence[Path], categories: Path | None, errors: list[Exception]
) -> Iterator[dict[str, Any]]:
    from spscanner_lab.synthesis.released_tests import (
        read_categories,
        read_released_tests,
    )

    category_by_names = None if categories is None else read_categories(categories)
    for path in files:
        if path.suffix == ".json":
            yield from read_released_tests(path, category_by_names, errors.append)


def _write_lines(lines: Iterable[dict[str, Any]], path: Path) -> None:
    """Write objects as lines of JSON."""
    with path.open("w", encoding="ascii") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
