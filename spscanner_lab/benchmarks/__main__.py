"""Run one measurement, print a short table, and write JSON if requested."""

import argparse
import json
import sys
from pathlib import Path

from spscanner_lab.benchmarks import (
    changed_facts,
    corpus,
    house,
    import_time,
    later_questions,
    long_documents,
    presets,
    rerankers,
    sentence_ends,
    serve,
    soak,
    speed,
)
from spscanner_lab.benchmarks.report import describe_run, print_report

MODULES = (
    speed,
    later_questions,
    presets,
    changed_facts,
    rerankers,
    long_documents,
    import_time,
    corpus,
    sentence_ends,
    serve,
    soak,
    house,
)


def main() -> int:
    """Return 1 if a measurement misses its bound, else 0."""
    arguments = _parser().parse_args()
    rows, ok = arguments.measure(arguments)
    report = {
        **describe_run(sys.argv[1:]),
        "benchmark": arguments.benchmark,
        "ok": ok,
        "results": rows,
    }
    print_report(report)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if ok else 1


def _parser() -> argparse.ArgumentParser:
    program = "python -m spscanner_lab.benchmarks"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    commands = parser.add_subparsers(
        dest="benchmark", required=True, metavar="BENCHMARK"
    )
    for module in MODULES:
        for command in module.add_commands(commands):
            command.add_argument(
                "--out", type=Path, metavar="JSON", help="write the report to this file"
            )
    return parser


if __name__ == "__main__":
    sys.exit(main())
