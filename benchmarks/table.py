"""Prints a report; consecutive rows with the same columns share one head."""

from collections.abc import Mapping

Report = Mapping[str, object]


def print_report(report: Report) -> None:
    """Print command, machine, versions and results, and the targets if there are any."""
    machine, versions, results = report["machine"], report["versions"], report["results"]
    assert isinstance(machine, dict)
    assert isinstance(versions, dict)
    assert isinstance(results, dict)
    print(report["command"])
    print(f"{report['date']}  {machine['processor']}, {machine['cores']} cores, {machine['accelerator']}")
    print("  ".join(f"{name} {version}" for name, version in versions.items()))
    _print_rows(results)
    targets = report.get("targets")
    if isinstance(targets, dict):
        print("\ntargets")
        _print_rows(targets)
        missed = [name for name, row in targets.items() if isinstance(row, dict) and not row["met"]]
        print(f"{len(missed)} missed")
    else:
        print("within bounds" if report["ok"] else "OUT OF BOUNDS")


def _print_rows(rows: Report) -> None:
    width = max(len(name) for name in rows)
    head: list[str] = []
    for name, row in rows.items():
        if not isinstance(row, dict):
            print(f"{name:<{width}}  {_number(row)}")
            continue
        if list(row) != head:
            head = list(row)
            print(f"{'':<{width}}  " + "  ".join(f"{column:>10}" for column in head))
        cells = (f"{_number(cell):>{max(10, len(column))}}" for column, cell in row.items())
        print(f"{name:<{width}}  " + "  ".join(cells))


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
