"""The speed of reading documents, and the speed of other programs.

There are three parts. `readings`: our backends and transformers on the same random
weights, with their shares of the machine's limit. `questions`: complete scanners with
several questions about a document, and with many short documents. `embedding`: a scan
compared with all-MiniLM-L6-v2 on the sentences of the same text, or with other models,
such as those of the Single-Pass Scanner paper: ``--embedders contriever dragon stella
--embedded-unit chunk``. The complete scanner of size "default" is the bundled one.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

from spscanner_lab.benchmarks.machine_limits import copy_rate
from spscanner_lab.benchmarks.model_shapes import SHAPES, write_random_weights
from spscanner_lab.benchmarks.process_memory import allow_no_more_than_is_free
from spscanner_lab.benchmarks.reading_programs import KINDS
from spscanner_lab.benchmarks.readings import reading_rows
from spscanner_lab.benchmarks.report import Commands, Row
from spscanner_lab.benchmarks.whole_scanners import scanner_rows

PARTS = ("readings", "questions", "embedding")


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `speed`."""
    command = commands.add_parser(
        "speed", help="speed, memory, share of the machine's limit; other programs"
    )
    add = command.add_argument
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add(
        "--dtype",
        nargs="+",
        choices=["float32", "bfloat16"],
        help="default: native, on CPU also float32",
    )
    add("--sizes", nargs="+", choices=sorted(SHAPES), default=["default", "130m"])
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=["torch", "transformers"],
        help="programs that read",
    )
    _add_lengths(command)
    add(
        "--repeats", type=int, default=3, help="measurements of each; the median counts"
    )
    add(
        "--longest",
        type=float,
        default=120,
        help="leave out rows that would take more seconds",
    )
    add(
        "--budget",
        type=float,
        default=math.inf,
        help="start no row after this many seconds",
    )
    command.set_defaults(measure=measure_speed)
    return [command]


def _add_lengths(command: argparse.ArgumentParser) -> None:
    """Add the options that say how much is read."""
    add = command.add_argument
    add(
        "--tokens",
        nargs="+",
        type=int,
        default=[1000, 10_000],
        help="document lengths to read",
    )
    add(
        "--questions",
        nargs="+",
        type=int,
        default=[1, 4, 16],
        help="questions about one document",
    )
    add("--question-tokens", type=int, default=10_000, help="length of that document")
    add(
        "--short-documents",
        type=int,
        default=256,
        help="number of short documents to scan at once",
    )
    add("--short-tokens", type=int, default=400, help="length of each")
    add(
        "--embedded-tokens",
        type=int,
        default=100_000,
        help="length of the text to embed and to scan",
    )
    add(
        "--embedders",
        nargs="+",
        default=["minilm"],
        metavar="MODEL",
        help="embedding models to compare, such as the paper's: contriever dragon",
    )
    add(
        "--embedded-unit",
        default="sentence",
        help="what they embed; chunk: the paper's chunks of 300 words",
    )
    add("--trust-remote-code", action="store_true", help="for gte-qwen2 and others")


def measure_speed(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Rows of all parts for every size, without bounds."""
    import torch

    arguments.end = time.monotonic() + arguments.budget
    device = torch.device(arguments.device)
    dtypes = arguments.dtype or _default_dtypes(arguments.device)
    allow_no_more_than_is_free()
    rows: dict[str, object] = {
        "threads": torch.get_num_threads(),
        "GB/s of a large copy": copy_rate(device) / 1e9,
    }
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_random_weights(size, folder)
            rows_of_size: dict[str, Row] = {}
            if "readings" in arguments.parts:
                for dtype in dtypes:
                    for kind in arguments.kinds:
                        rows_of_size |= reading_rows(
                            kind, folder, device, dtype, arguments
                        )
            if set(arguments.parts) - {"readings"}:
                rows_of_size |= scanner_rows(size, folder, device, dtypes[0], arguments)
        for row_name, row in rows_of_size.items():
            rows[f"{size}, {row_name}"] = row
    return rows, True


def _default_dtypes(device: str) -> list[str]:
    from spscanner_rag.scan.devices import choose

    native = str(choose(device).dtype).removeprefix("torch.")
    if device == "cpu":
        return list(dict.fromkeys([native, "float32"]))
    return [native]
