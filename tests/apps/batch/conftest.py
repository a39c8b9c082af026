"""Fixtures for the tests of batches: files of rows, and what every worker does."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.batch.inputs import Columns, Query
from spscanner_rag.apps.batch.workers import Work
from spscanner_rag.results import Selection

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
def work_on(tiny_checkpoint: Path) -> Callable[..., Work]:
    """What workers do with the tiny checkpoint."""

    def made(queries: Sequence[Query] = (), **selection: Any) -> Work:
        arguments = {
            "model": str(tiny_checkpoint),
            "device": "cpu",
            "dtype": "float32",
            "backend": "torch",
            "threads": 1,
        }
        return Work(arguments, Columns(), queries, Selection(**selection), "jsonl")

    return made


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
