"""``spscanner from-released``: convert the files that the paper's authors released."""

import json
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from spscanner_rag.apps.cli.declaring import argument, option
from spscanner_rag.text.escaping import one_line


def from_released(
    files: list[Path] = argument(
        "Released files: training files, .jsonl, or test files, .json.", "FILE..."
    ),
    out: Path = option(..., "Question file to write, .jsonl."),
    tokenizer: Path | None = option(
        None, "tokenizer.json of EleutherAI/gpt-neox-20b, for training files."
    ),
) -> None:
    """Convert files that the paper's authors released into question files.

    It is for people who have them.
    """
    from spscanner_lab.synthesis.released import read_released, read_released_tests
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
    from spscanner_rag.system.outputs import (
        check_outputs,
        check_results_folder,
        files_of_run,
    )
    from spscanner_rag.system.whole_files import whole_file

    inputs = files if tokenizer is None else [*files, tokenizer]
    check_outputs({"--out": out}, (), inputs)
    check_results_folder(out.parent, files_of_run([out.name]), inputs)
    training_files = [path for path in files if path.suffix != ".json"]
    test_files = [path for path in files if path.suffix == ".json"]
    lines: list[Iterable[dict[str, Any]]] = []
    if tokenizer is not None:
        lines.append(read_released(training_files, read_tokenizer(tokenizer)))
    elif training_files:
        raise ValueError(
            f"got {training_files[0]}, a training file, without --tokenizer; expected"
            " both"
        )
    lines += [read_released_tests(path) for path in test_files]
    with whole_file(out) as unfinished:
        count = _write_lines(chain.from_iterable(lines), unfinished)
        if not count:
            raise ValueError(f"{files[0]}: no record; expected released data")
    sys.stdout.write(f"{count:,} questions in {one_line(str(out))}\n")


def _write_lines(lines: Iterable[dict[str, Any]], path: Path) -> int:
    """Write objects as lines of JSON; return how many there are."""
    count = 0
    with path.open("w", encoding="ascii") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
            count += 1
    return count
