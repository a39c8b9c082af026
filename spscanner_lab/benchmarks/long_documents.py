"""Peak memory and time of a scan as the document grows.

The bundled checkpoint reads on the CPU. Each size runs in a separate process, so that
neither memory nor warm caches carry over.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from spscanner_lab.benchmarks.process_memory import peak_bytes
from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import QUESTION, example_text

# characters
SHORT = 30_000
MIDDLE = 300_000
LONG = 3_000_000

ALLOWED_GROWTH_MB = 300.0
ALLOWED_TIME_RATIO = 10.5

# times of a question with the encoder, in multiples of one without
MOST_FIRST = 4.0
MOST_NEXT = 1.05

_MODULE = "spscanner_lab.benchmarks.long_documents"


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `memory`, `linear` and `encoder`."""
    memory = commands.add_parser(
        "memory", help=f"peak memory of {LONG:,} and of {SHORT:,} characters"
    )
    memory.set_defaults(measure=measure_memory)
    linear = commands.add_parser(
        "linear", help=f"time of {LONG:,} and of {MIDDLE:,} characters"
    )
    linear.add_argument(
        "--repeats",
        type=int,
        default=3,
        help="scans of the shorter text; the median counts",
    )
    linear.set_defaults(measure=measure_linear)
    for command in (memory, linear):
        command.add_argument(
            "--scale",
            type=float,
            default=1.0,
            help="shrink both documents, for a trial run",
        )
        command.add_argument(
            "--model", help="checkpoint folder or Hub id; default: the bundled one"
        )
    return [memory, linear, _encoder_command(commands)]


def _encoder_command(commands: Commands) -> argparse.ArgumentParser:
    encoder = commands.add_parser(
        "encoder",
        help="the first and the next question about a text, with and without encoder",
    )
    encoder.add_argument(
        "--characters",
        type=int,
        default=450_000,
        help="of the text, about 100,000 tokens",
    )
    encoder.add_argument(
        "--repeats", type=int, default=3, help="measurements of each; the median counts"
    )
    encoder.add_argument("--dtype", default="auto")
    encoder.set_defaults(measure=measure_encoder)
    return encoder


def measure_encoder(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds of a question: without encoder, the first with encoder, and the next.

    The bounds are ratios.
    """
    from spscanner_rag import Scanner

    text = example_text(arguments.characters)
    dtype = arguments.dtype
    plain = Scanner.from_pretrained(device="cpu", dtype=dtype, encoder=None)
    encoded = Scanner.from_pretrained(device="cpu", dtype=dtype)
    for scanner in (plain, encoded):
        scanner.scan(QUESTION, text[:20_000])  # compiles kernels
    scanners = {
        "without encoder": plain,
        "first question": encoded,
        "next question": encoded,
    }
    seconds: dict[str, list[float]] = {name: [] for name in scanners}
    for number in range(arguments.repeats):
        changed = f"{number} {text}"  # a new text
        for name, scanner in scanners.items():
            start = time.perf_counter()
            scanner.scan(QUESTION, changed)
            seconds[name].append(time.perf_counter() - start)
    rows: dict[str, object] = {}
    for name, values in seconds.items():
        rows[f"seconds, {name}"] = statistics.median(values)
    without, first, following = map(statistics.median, seconds.values())
    rows[f"first question, times without (at most {MOST_FIRST:g})"] = first / without
    rows[f"next question, times without (at most {MOST_NEXT:g})"] = following / without
    return rows, first <= MOST_FIRST * without and following <= MOST_NEXT * without


def measure_memory(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """How much more memory a long document takes than a short one.

    Peaks are of resident memory of a process, in MB (10^6 bytes).
    """
    short = _scan_in_process(int(SHORT * arguments.scale), 1, arguments.model)
    long = _scan_in_process(int(LONG * arguments.scale), 1, arguments.model)
    growth = long["peak_mb"] - short["peak_mb"]
    rows: dict[str, object] = {
        f"peak MB, {short['characters']:,} characters": short["peak_mb"],
        f"peak MB, {long['characters']:,} characters": long["peak_mb"],
        f"growth MB (at most {ALLOWED_GROWTH_MB:g})": growth,
    }
    return rows, growth <= ALLOWED_GROWTH_MB


def measure_linear(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds to scan a long document, divided by those for one a tenth as long.

    Loading is not timed.
    """
    middle = _scan_in_process(
        int(MIDDLE * arguments.scale), arguments.repeats, arguments.model
    )
    long = _scan_in_process(int(LONG * arguments.scale), 1, arguments.model)
    ratio = long["seconds"] / middle["seconds"]
    rows: dict[str, object] = {
        f"seconds, {middle['characters']:,} characters": middle["seconds"],
        f"seconds, {long['characters']:,} characters": long["seconds"],
        "characters per second": long["characters"] / long["seconds"],
        f"ratio (at most {ALLOWED_TIME_RATIO:g})": ratio,
    }
    return rows, ratio <= ALLOWED_TIME_RATIO


def _scan_in_process(
    characters: int, repeats: int, model: str | None
) -> dict[str, float]:
    command = [sys.executable, "-m", _MODULE, str(characters), str(repeats)]
    if model:
        command.append(model)
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    numbers: dict[str, float] = json.loads(process.stdout)
    return numbers


def _scan_here(characters: int, repeats: int, model: str | None) -> dict[str, float]:
    """Scan in this process and report.

    Memory includes loading and a first short scan, the time does not.
    """
    from spscanner_rag import Scanner

    scanner = Scanner.from_pretrained(model, device="cpu")
    scanner.scan(QUESTION, example_text(min(characters, 3_000)))
    text = example_text(characters)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = scanner.scan(QUESTION, text)
        seconds.append(time.perf_counter() - start)
    return {
        "characters": len(text),
        "sentences": len(result.sentences),
        "seconds": statistics.median(seconds),
        "peak_mb": peak_bytes() / 1e6,
    }


def _main() -> None:
    characters, repeats, *models = sys.argv[1:]
    model = models[0] if models else None
    print(json.dumps(_scan_here(int(characters), int(repeats), model)))


if __name__ == "__main__":
    _main()
