"""A batch: the rows of each part, rows as records, and the parts that an interrupted run keeps."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag.apps import batch
from spscanner_rag.apps.batch import (
    IDENTITY,
    Columns,
    Form,
    Plan,
    Progress,
    Row,
    RowReader,
    plan_of,
    run_batch,
    scan_rows,
)
from spscanner_rag.results import Selection
from spscanner_rag.scan.pipeline import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.folder_lock import FolderInUseError, folder_lock
from spscanner_rag.system.run_inputs import OtherRunError

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
    """Scans a file into a folder; options are those of the selection or of `run_batch`."""

    def run(
        path: str,
        out: Path,
        rows: int = 3,
        form: Form = "jsonl",
        top_k: int = 50,
        **options: Any,
    ) -> Progress:
        plan = plan_of([path], Columns(), rows, False)
        made_by = {"files": options.pop("files", "a")}
        selection = Selection(top_k=top_k)
        return run_batch(
            plan,
            RowReader(Columns()),
            selection,
            made_by,
            out,
            tiny_scanner,
            form=form,
            **options,
        )

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


@pytest.mark.parametrize("kind", ["json_lines", "parquet"])
def test_every_row_is_in_one_part_in_order(
    kind: str, request: pytest.FixtureRequest
) -> None:
    write = request.getfixturevalue(kind)
    plan = planned(write(pairs(10)), rows=4)
    found = parts_of(plan)
    assert [len(part) for part in found] == [4, 4, 2]
    assert [row.id for part in found for row in part] == [
        f"row-{number}" for number in range(10)
    ]
    assert [chunk.number for chunk in plan.chunks] == [0, 1, 2]
    assert found[2][1].document == pairs(10)[9]["text"]


def test_long_rows_end_a_part_early(
    json_lines: Rows, parquet: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "CHUNK_BYTES", 1000)
    long = [{"query": "Who?", "text": f"{number} " * 300} for number in range(6)]
    for path in (json_lines(long), parquet(long)):
        plan = planned(path, rows=500)
        assert len(plan.chunks) >= 3
        assert [row.document for part in parts_of(plan) for row in part] == [
            each["text"] for each in long
        ]


def test_a_folder_is_its_tables_without_hidden_files(
    tmp_path: Path, json_lines: Rows
) -> None:
    for name in (
        "in/b.jsonl",
        "in/a/c.jsonl",
        "in/_meta.jsonl",
        "in/.hidden.jsonl",
        "in/_old/d.jsonl",
    ):
        json_lines(pairs(1), name)
    paths = [chunk.paths[0] for chunk in planned(tmp_path / "in").chunks]
    assert [Path(path).name for path in paths] == ["c.jsonl", "b.jsonl"]


def test_inputs_that_cannot_be_scanned_are_refused(
    tmp_path: Path, json_lines: Rows, parquet: Rows
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    cases = [
        (tmp_path / "none.jsonl", "cannot be read"),
        (empty, "nothing can be read"),
        (json_lines([]), "got no row"),
        (parquet([{"query": "q", "body": "t"}]), "expected a column of strings 'text'"),
        (json_lines([], "false.parquet"), "not a Parquet file"),
        (tmp_path / "a.txt", "without a question"),
    ]
    for path, message in cases:
        with pytest.raises(ValueError, match=message):
            planned(path)


def test_rows_that_cannot_be_read_have_the_reason(json_lines: Rows) -> None:
    records = [
        b"nonsense",
        b"[1]",
        b'{"query": "q", "text": "a", "text": "b"}',
        b'{"text": "only"}',
        b'{"query": 3, "text": "t"}',
        b'{"query": "q", "text": null}',
        b"\xff\xfe",
        b"[" * 100_000,
        {"id": 12, "query": "q", "text": "t"},
    ]
    (part,) = parts_of(planned(json_lines(records), rows=99))
    reasons = [
        "not a JSON object",
        "a JSON list",
        "twice",
        "query: missing",
        "query: got int",
        "text: got NoneType",
    ]
    for row, reason in zip(
        part, [*reasons, "not a JSON object", "not a JSON object"], strict=False
    ):
        assert reason in str(row.error)
    assert (part[0].id, part[-1].id, part[-1].error) == ("rows.jsonl:1", "12", None)


def test_a_string_that_is_not_utf8_is_one_rows_error(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import pyarrow.parquet as pq

    texts = pa.array([b"good", b"\xff bad", b"good too"], pa.binary()).view(pa.string())
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"query": pa.array(["q"] * 3), "text": texts}), path)
    (part,) = parts_of(planned(path))
    assert [row.error is None for row in part] == [True, False, True]


def asked(records: Iterable[dict[str, str]]) -> list[Row]:
    return [Row(each["id"], None, each["query"], each["text"]) for each in records]


def test_records_are_those_of_single_scans(tiny_scanner: Scanner) -> None:
    rows = asked(pairs(7))
    for row, record in zip(
        rows, scan_rows(tiny_scanner, rows, Selection(top_k=2)), strict=True
    ):
        assert isinstance(row.document, str)
        alone = tiny_scanner.scan(row.query, row.document)
        best = np.sort(alone.logits)[::-1][:2]
        np.testing.assert_allclose(
            [each["logit"] for each in record["sentences"]], best, atol=1e-4
        )
        assert record["id"] == row.id
        assert record["sentence_count"] == len(alone.logits)
        assert record["document_score"] == pytest.approx(
            alone.document_score(), abs=1e-4
        )
        assert all(
            row.document[each["start"] : each["end"]] == each["text"]
            for each in record["sentences"]
        )


def test_threshold_and_texts(tiny_scanner: Scanner) -> None:
    (record,) = scan_rows(
        tiny_scanner, asked(pairs(1)), Selection(top_k=None, threshold=1.0)
    )
    assert record["sentences"] == []
    (record,) = scan_rows(
        tiny_scanner, asked(pairs(1)), Selection(top_k=None), texts=False
    )
    assert [each["text"] for each in record["sentences"]] == [None] * 3


def test_bad_rows_have_errors_and_the_others_do_not(tiny_scanner: Scanner) -> None:
    rows = [
        Row("a", None, "", "An empty question."),
        Row("b", None, "Who?", "He signed it."),
        Row("c", error="text: missing"),
        Row("d", None, "Who?", " \n"),
        Row("\ud800", None, "Who \udfff?", "A lone \ud800 surrogate."),
    ]
    records = scan_rows(tiny_scanner, rows, Selection())
    assert [record["error"] is None for record in records] == [
        False,
        True,
        False,
        True,
        True,
    ]
    assert records[3]["document_score"] is None
    assert records[4]["id"] == "\ufffd"
    assert records[4]["sentences"][0]["text"] == "A lone \ufffd surrogate."


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("no room"), RuntimeError("kernel")]
)
def test_bad_rows_are_read_alone(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    right = Scanner.scan_many

    def scan_many(self: Scanner, given: Sequence[ScanRequest]) -> Any:
        if any("treaty 2" in request.query for request in given):
            raise error
        return right(self, given)

    monkeypatch.setattr(Scanner, "scan_many", scan_many)
    records = scan_rows(tiny_scanner, asked(pairs(3)), Selection())
    assert [record["error"] is None for record in records] == [True, True, False]
    assert records[2]["error"].startswith(type(error).__name__)


def rounded(record: dict[str, Any]) -> dict[str, Any]:
    """A record with numbers rounded to float32, as Parquet stores them."""
    return {
        key: np.float32(value) if isinstance(value, float) else value
        for key, value in record.items()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_parquet_parts_have_the_same_records(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    path = json_lines(pairs(5))
    run(path, tmp_path / "a")
    run(path, tmp_path / "b", form="parquet")
    parts = [part.read_text() for part in sorted((tmp_path / "a").glob("part-*"))]
    lines = map(json.loads, "".join(parts).splitlines())
    for expected, got in zip(
        lines, pq.read_table(tmp_path / "b").to_pylist(), strict=True
    ):
        sentences = zip(got.pop("sentences"), expected.pop("sentences"), strict=True)
        assert all(rounded(one) == rounded(other) for one, other in sentences)
        assert rounded(got) == rounded(expected)


def test_an_interrupted_run_goes_on_and_reads_no_finished_row_again(
    json_lines: Rows, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = json_lines(pairs(9))
    run(path, tmp_path / "whole")

    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, tmp_path / "out", show=stop)
    read: list[int] = []
    right = RowReader.rows
    monkeypatch.setattr(
        RowReader,
        "rows",
        lambda own, chunk: read.append(chunk.number) or right(own, chunk),
    )
    done = run(path, tmp_path / "out")
    assert (read, done.found, done.done) == ([2], 2, 1)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_another_run_in_the_folder_is_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    path, out = json_lines(pairs(5)), tmp_path / "out"
    run(path, out)
    before = contents(out)
    others: list[Callable[[], object]] = [
        lambda: run(json_lines(pairs(6), "other.jsonl"), out),
        lambda: run(path, out, top_k=3),
        lambda: run(path, out, rows=2),
        lambda: run(path, out, files="b"),
    ]
    for other in others:
        with pytest.raises(
            OtherRunError, match="give the same again, or another --out"
        ):
            other()
    assert contents(out) == before


def test_parts_of_unknown_origin_are_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    path, out = json_lines(pairs(5)), tmp_path / "out"
    run(path, out)
    for damage in (
        lambda: (out / IDENTITY).write_text("{"),
        lambda: (out / IDENTITY).unlink(),
    ):
        damage()
        with pytest.raises(OtherRunError, match="give another --out"):
            run(path, out)


def test_two_runs_at_once_are_refused(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    with (
        folder_lock(tmp_path / "out"),
        pytest.raises(FolderInUseError, match="in use by another run"),
    ):
        run(json_lines(pairs(2)), tmp_path / "out")


def test_unreadable_parts_leave_the_others(
    json_lines: Rows, tiny_scanner: Scanner, tmp_path: Path
) -> None:
    first, second = json_lines(pairs(2), "a.jsonl"), json_lines(pairs(3), "b.jsonl")
    plan = plan_of([first, second], Columns(), 10, False)
    os.unlink(first)
    done = run_batch(
        plan, RowReader(Columns()), Selection(), {}, tmp_path / "out", tiny_scanner
    )
    assert (done.done, done.rows) == (1, 3)
    assert "part 0: ValueError" in done.failures[0]
