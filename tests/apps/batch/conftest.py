"""Files of rows, and runs over them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.batch.encoding import PartForm
from spscanner_rag.apps.batch.plan import Plan, plan_of
from spscanner_rag.apps.batch.rows import Row, RowReader
from spscanner_rag.apps.batch.run import Progress, run_batch
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.apps.batch.worker import BatchTask, Worker
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner

Rows = Callable[..., str]


Run = Callable[..., Progress]


@pytest.fixture
def json_lines(tmp_path: Path) -> Rows:
    """Writes records, or given lines, to a JSONL file."""

    def write(
        records: Sequence[Mapping[str, Any] | bytes], name: str = "rows.jsonl"
    ) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            record if isinstance(record, bytes) else json.dumps(record).encode()
            for record in records
        ]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return str(path)

    return write


@pytest.fixture
def parquet(tmp_path: Path) -> Rows:
    """Writes records to a Parquet file."""
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import pyarrow.parquet as pq

    def write(
        records: Sequence[Mapping[str, Any]], name: str = "rows.parquet", **options: Any
    ) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(list(records)), path, **options)
        return str(path)

    return write


@pytest.fixture
def run(tiny_scanner: Scanner) -> Callable[..., Progress]:
    """Scans a file into a folder; other options are those of `run_batch`."""

    def run(
        path: str,
        out: Path,
        rows: int = 3,
        form: PartForm = "jsonl",
        top_k: int = 50,
        **options: Any,
    ) -> Progress:
        plan = plan_of([path], Columns(), rows, False)
        checkpoint = {"files": options.pop("files", "a")}
        task = BatchTask(Columns(), (), Selection(top_k=top_k), form)
        worker = Worker(tiny_scanner, task, plan.check_unchanged)
        return run_batch(plan, task, checkpoint, out, worker.finish_all, **options)

    return run


def pairs(count: int) -> list[dict[str, str]]:
    """Records of questions and documents."""
    return [
        {
            "id": f"row-{number}",
            "query": f"Who signed treaty {number % 3}?",
            "text": (
                f"Keeper {number} wrote. He signed treaty {number % 3}. The bell rang"
                f" {number} times."
            ),
        }
        for number in range(count)
    ]


def planned(path: object, rows: int = 4) -> Plan:
    return plan_of([str(path)], Columns(), rows, has_queries=False)


def parts_of(plan: Plan) -> list[list[Row]]:
    reader = RowReader(Columns())
    return [reader.rows(chunk) for chunk in plan.chunks]


def asked(records: Iterable[dict[str, str]]) -> list[Row]:
    return [Row(each["id"], None, each["query"], each["text"]) for each in records]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
