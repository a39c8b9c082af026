"""Fixtures for the tests of batches: files of rows, and runs over them."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.batch.batch_run import Form, Progress, Work, run_batch
from spscanner_rag.apps.batch.inputs import Columns, plan_of
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner

Rows = Callable[..., str]


@pytest.fixture
def json_lines(tmp_path: Path) -> Rows:
    """Writes records, or lines as they are, to a JSONL file."""

    def write(records: Sequence[Mapping[str, Any] | bytes], name: str = "rows.jsonl") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return str(path)

    return write


@pytest.fixture
def parquet(tmp_path: Path) -> Rows:
    """Writes records to a Parquet file."""
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import pyarrow.parquet as pq

    def write(records: Sequence[Mapping[str, Any]], name: str = "rows.parquet", **options: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(records)), path, **options)
        return str(path)

    return write


@pytest.fixture
def run(tiny_scanner: Scanner) -> Callable[..., Progress]:
    """Scans a file into a folder; options are those of the selection, of `Work` or of `run_batch`."""

    def run(
        path: str, out: Path, rows: int = 3, form: Form = "jsonl", top_k: int = 50, **options: Any
    ) -> Progress:
        work = Work(Columns(), (), Selection(top_k=top_k), form)
        checkpoint = {"files": options.pop("files", "a")}
        return run_batch(
            plan_of([path], Columns(), rows, False), work, checkpoint, out, tiny_scanner, **options
        )

    return run


def pairs(count: int) -> list[dict[str, str]]:
    """Records of questions and documents."""
    return [
        {
            "id": f"row-{number}",
            "query": f"Who signed treaty {number % 3}?",
            "text": f"Keeper {number} wrote. He signed treaty {number % 3}. The bell rang {number} times.",
        }
        for number in range(count)
    ]
