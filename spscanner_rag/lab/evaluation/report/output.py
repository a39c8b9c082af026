"""Writes a result to the files of its folder."""

import json
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.report.markdown import to_markdown
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rows import to_csv


def write_result(result: Result, out: Path) -> None:
    """Write all files of a result except its page."""
    rows = [*result.rows, *result.more_rows]
    content = {"results.json": rows, "differences.json": result.differences, **result.files}
    for name, value in content.items():
        write_whole(out / name, json.dumps(value, indent=1) + "\n")
    write_whole(out / "results.csv", to_csv(rows))
    write_whole(out / "results.md", to_markdown(result))
