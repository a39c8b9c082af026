"""Peak memory and time of a scan as the document grows, with the bundled checkpoint on the CPU.

Each size runs in a separate process, so that neither memory nor warm caches carry over.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.texts import QUESTION, example_text

SHORT, MIDDLE, LONG = 30_000, 300_000, 3_000_000
ALLOWED_GROWTH_MB = 300.0
ALLOWED_TIME_RATIO = 10.5
MOST_FIRST, MOST_NEXT = 4.0, 1.05


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `memory` and `linear`."""
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
    return [memory, linear, encoder]


def measure_encoder(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Seconds of a question: without encoder, the first with encoder, and the next.

    The bounds are ratios.
    """
    from spscanner_rag import Scanner

    text, dtype = example_text(arguments.characters), arguments.dtype
    plain = Scanner.from_pretrained(device="cpu", dtype=dtype, encoder=None)
    encoded = Scanner.from_pretrained(device="cpu", dtype=dtype)
    seconds: dict[str, list[float]] = {
        "without encoder": [],
        "first question": [],
        "next question": [],
    }
    for scanner in (plain, encoded):
        scanner.scan(QUESTION, text[:20_000])  # compiles kernels
    for number in range(arguments.repeats):
        changed = f"{number} {text}"  # a new text
        for name, scanner in zip(seconds, (plain, encoded, encoded), strict=True):
            start = time.perf_counter()
            scanner.scan(QUESTION, changed)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    without, first, following = medians.values()
    rows: dict[str, object] = {
        f"seconds, {name}": value for name, value in medians.items()
    }
    rows |= {
        f"first question, times without (at most {MOST_FIRST:g})": first / without,
        f"next question, times without (at most {MOST_NEXT:g})": following / without,
    }
    return rows, first <= MOST_FIRST * without and following <= MOST_NEXT * without


def measure_memory(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Peak resident memory of a process with a long document minus one with a short one, in MB (10^6 bytes)."""
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


def peak_bytes() -> int:
    """Peak resident memory of this process so far."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    # On Linux, ru_maxrss includes the parent's copy from before exec; VmHWM does not.
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def allow_no_more_than_is_free() -> None:
    """On Linux, let allocations fail when memory runs out, so that the system does not kill a process."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    import resource

    free = next(
        int(line.split()[1]) * 1024
        for line in lines
        if line.startswith("MemAvailable:")
    )
    resource.setrlimit(
        resource.RLIMIT_AS, (free, resource.getrlimit(resource.RLIMIT_AS)[1])
    )


def _scan_in_process(
    characters: int, repeats: int, model: str | None
) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.long_documents",
        str(characters),
        str(repeats),
    ]
    answer = subprocess.run(
        [*command, *([model] if model else [])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    numbers: dict[str, float] = json.loads(answer)
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


if __name__ == "__main__":
    _characters, _repeats, *_model = sys.argv[1:]
    print(
        json.dumps(
            _scan_here(int(_characters), int(_repeats), _model[0] if _model else None)
        )
    )
