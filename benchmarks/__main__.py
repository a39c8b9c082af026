"""Run one measurement, print a short table, and write the JSON where asked."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import ablation, import_time, long_documents, speed, throughput
from benchmarks.machine import describe_run


def main() -> int:
    """Return 1 where a measurement misses its bound, else 0."""
    arguments = _parser().parse_args()
    rows, ok = arguments.measure(arguments)
    report = {**describe_run(sys.argv[1:]), "benchmark": arguments.benchmark, "ok": ok, "results": rows}
    _print_table(report)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for module in (throughput, speed, long_documents, import_time, ablation):
        for command in module.add_commands(commands):
            command.add_argument("--out", type=Path, metavar="JSON", help="write the report to this file")
    return parser


def _print_table(report: dict[str, object]) -> None:
    machine, versions, results = report["machine"], report["versions"], report["results"]
    assert isinstance(machine, dict)
    assert isinstance(versions, dict)
    assert isinstance(results, dict)
    print(report["command"])
    print(f"{report['date']}  {machine['processor']}, {machine['cores']} cores, {machine['accelerator']}")
    print("  ".join(f"{name} {version}" for name, version in versions.items()))
    width = max(len(name) for name in results)
    for name, value in results.items():
        print(f"{name:<{width}}  {_number(value)}")
    print("within bounds" if report["ok"] else "OUT OF BOUNDS")


def _number(value: object) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{_number(number):>9} {name}" for name, number in value.items())
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main())
