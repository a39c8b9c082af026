"""How fast documents are read, how close that is to the machine's limit, and how fast other programs are.

There are four parts. `readings`: backends, transformers and the published evaluation's model on random weights of
one shape. `questions`: whole scanners with several questions on a document, and with many short documents.
`embedding`: scanners against a dense-embedding pass over the same text. `channels`: a scan with its lexical
channel and without. The whole scanner of size "default" is the bundled one; only it
has a lexical channel.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.channel_rows import channel_rows
from benchmarks.embedding_rows import EMBEDDERS, MINILM, embedding_rows
from benchmarks.limits import copy_rate, product_rate
from benchmarks.published_path import NotMeasuredError
from benchmarks.random_weights import SHAPES, write_random_weights
from benchmarks.reading_kinds import KINDS, OURS
from benchmarks.reading_rows import Reading, reading_rows
from benchmarks.scanner_rows import question_rows, scanner_of, short_document_row
from benchmarks.speed_results import SpeedResults
from benchmarks.targets import judge

if TYPE_CHECKING:
    from spscanner_rag import Scanner

PARTS = ("readings", "questions", "embedding", "channels")
DTYPES = ("float32", "bfloat16", "int8")


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `speed`."""
    command = commands.add_parser(
        "speed", help="speed, memory, share of the machine's limit; other programs; targets"
    )
    add = command.add_argument
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add(
        "--dtype",
        nargs="+",
        choices=DTYPES,
        help="default: the device's native dtype, on a CPU also float32; int8 runs on a CPU",
    )
    add("--sizes", nargs="+", choices=sorted(SHAPES), default=["default", "130m"])
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--kinds", nargs="+", choices=KINDS, default=["torch", "transformers"], help="programs that read")
    add("--tokens", nargs="+", type=int, default=[1000, 10_000], help="document lengths to read")
    add("--questions", nargs="+", type=int, default=[1, 4, 16], help="questions on one document")
    add("--question-tokens", type=int, default=10_000, help="length of that document")
    add("--short-documents", type=int, default=256, help="number of short documents to scan at once")
    add("--short-tokens", type=int, default=400, help="length of each")
    add("--embedders", nargs="+", choices=EMBEDDERS, default=[MINILM])
    add(
        "--embedded-tokens",
        type=int,
        default=100_000,
        help="length of the text to embed and to scan",
    )
    add(
        "--channel-tokens",
        type=int,
        default=100_000,
        help="length of the text to scan with and without the lexical channel",
    )
    add("--repeats", type=int, default=3, help="measurements of each; the median counts")
    add("--longest", type=float, default=120, help="leave out rows that would take more seconds")
    add("--budget", type=float, default=math.inf, help="begin no row after this many seconds")
    command.set_defaults(measure=measure_speed)
    return [command]


def measure_speed(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Rows of all parts for every size, and "targets"; there are no bounds."""
    run = _Run(arguments)
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            run.write_weights(size, Path(folder))
            if "readings" in arguments.parts:
                run.add_readings(size, Path(folder))
            if set(arguments.parts) - {"readings"}:
                run.add_scanner_rows(size, Path(folder))
    return run.results.by_name() | {"targets": judge(run.results)}, True


class _Run:
    """The state that all parts of a run share."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        import torch

        self.arguments = arguments
        self.end = time.monotonic() + arguments.budget
        self.device = torch.device(arguments.device)
        self.dtypes = arguments.dtype or _default_dtypes(arguments.device)
        if "int8" in self.dtypes and arguments.device != "cpu":
            raise SystemExit(f"--dtype int8: got --device {arguments.device}; expected --device cpu")
        self.copy_rate = copy_rate(self.device)
        self.results = SpeedResults(arguments.device)
        for dtype in self.dtypes:
            rate = product_rate(self.device, getattr(torch, dtype))
            self.results.limits[f"TFLOP/s of a large product, {dtype}"] = rate / 1e12
        self.results.limits["GB/s of a large copy"] = self.copy_rate / 1e9
        self.results.limits["threads"] = torch.get_num_threads()

    def write_weights(self, size: str, folder: Path) -> None:
        """Write the weights of a size, the same in every run."""
        import torch

        torch.manual_seed(0)
        write_random_weights(size, folder)

    def add_readings(self, size: str, folder: Path) -> None:
        """Add the rows of every dtype, kind and length."""
        given = self.arguments
        for dtype in self.dtypes:
            for kind in given.kinds:
                reading = Reading(
                    kind=kind,
                    folder=str(folder),
                    device=given.device,
                    dtype=dtype,
                    tokens=given.tokens,
                    repeats=given.repeats,
                    longest=given.longest,
                    seconds_left=self.end - time.monotonic(),
                    copy_rate=self.copy_rate,
                )
                for tokens, row in reading_rows(reading):
                    self.results.readings[size, dtype, kind, tokens] = row

    def add_scanner_rows(self, size: str, folder: Path) -> None:
        """Add the rows of a whole scanner in the first dtype."""
        given, rows = self.arguments, self.results.scanner_rows
        if not self._has_time(size, "whole scanner"):
            return
        try:
            scanner = self._scanner(size, folder)
        except NotMeasuredError as error:
            rows[size, "whole scanner"] = f"not measured: {error}"
            return
        how = (given.repeats, given.longest)
        if "questions" in given.parts and self._has_time(size, "questions"):
            tokens, documents, short = given.question_tokens, given.short_documents, given.short_tokens
            for number, row in question_rows(scanner, tokens, given.questions, *how).items():
                rows[size, f"{number} question{'s' * (number > 1)} on {tokens:,} tokens"] = row
            row = short_document_row(scanner, documents, short, *how)
            rows[size, f"{documents:,} documents of {short:,} tokens"] = row
        if "embedding" in given.parts and self._has_time(size, "embedding"):
            tokens = given.embedded_tokens
            for name, row in embedding_rows(scanner, given.embedders, tokens, *how).items():
                rows[size, f"{tokens:,} tokens, {name}"] = row
        if "channels" in given.parts and self._has_time(size, "channels"):
            tokens = given.channel_tokens
            for name, row in channel_rows(scanner, tokens, *how).items():
                rows[size, f"{tokens:,} tokens, {name}"] = row

    def _scanner(self, size: str, folder: Path) -> Scanner:
        """A scanner with the first of our backends that runs here."""
        import torch

        reasons = []
        asked = [kind for kind in self.arguments.kinds if kind in OURS]
        for kind in asked or OURS:
            try:
                return scanner_of(size, kind, folder, self.device, getattr(torch, self.dtypes[0]))
            except NotMeasuredError as error:
                reasons.append(str(error))
        raise NotMeasuredError("; ".join(reasons))

    def _has_time(self, size: str, part: str) -> bool:
        if time.monotonic() < self.end:
            return True
        self.results.scanner_rows[size, part] = "not measured: no time left"
        return False


def _default_dtypes(device: str) -> list[str]:
    from spscanner_rag.scan.devices import choose

    native = str(choose(device).dtype).removeprefix("torch.")
    return list(dict.fromkeys([native, "float32"])) if device == "cpu" else [native]
