"""The time of imports: each statement in a fresh interpreter, minus an empty one."""

import argparse
import statistics
import subprocess
import sys
import time

from spscanner_lab.benchmarks.report import Commands

STATEMENTS = (
    "import spscanner_rag",
    "from spscanner_rag import ScanResult",
    "from spscanner_rag import Scanner",
    "import torch",
)


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `import`."""
    command = commands.add_parser("import", help="import time in seconds")
    command.add_argument(
        "--repeats", type=int, default=7, help="interpreters for each statement"
    )
    command.set_defaults(measure=measure_import)
    return [command]


def measure_import(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Median seconds of each statement, without bounds."""
    empty = _seconds("pass", arguments.repeats)
    rows: dict[str, object] = {}
    for statement in STATEMENTS:
        seconds = _seconds(statement, arguments.repeats)
        rows[f"seconds, {statement}"] = seconds - empty
    return rows, True


def _seconds(statement: str, repeats: int) -> float:
    durations = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        durations.append(time.perf_counter() - start)
    return statistics.median(durations[1:])  # the first run fills the file cache
