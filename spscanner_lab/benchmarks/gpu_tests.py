"""Says whether the tests of ``gpu.sh`` ran, from the report that pytest writes."""

import sys
from pathlib import Path
from xml.etree import ElementTree

NUMBERS = ("tests", "skipped", "failures", "errors")


def fault_of(report: Path) -> str:
    """Return why the tests of a report say nothing, "" if some ran.

    ``report`` is what pytest's ``--junitxml`` writes; it is absent if pytest could not
    begin.
    """
    try:
        suites = ElementTree.parse(report).getroot().iter("testsuite")
    except (OSError, ElementTree.ParseError) as error:
        return f"there is no report of tests ({error})"
    totals = dict.fromkeys(NUMBERS, 0)
    for suite in suites:
        for name in NUMBERS:
            totals[name] += int(suite.get(name, 0))
    ran = totals["tests"] - totals["skipped"] - totals["errors"]
    if totals["errors"]:
        return f"{totals['errors']} could not begin"
    if ran <= 0:
        return f"{totals['skipped']} were skipped, and none ran"
    return ""


def main() -> None:
    """Exit with an error if the tests of the report say nothing."""
    fault = fault_of(Path(sys.argv[1]))
    if fault:
        sys.exit(
            f"the correctness tests did not run: {fault}; expected that some run: see"
            " above what is missing"
        )


if __name__ == "__main__":
    main()
