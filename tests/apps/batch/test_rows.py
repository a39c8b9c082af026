"""Rows that cannot be read."""

from pathlib import Path

import pytest

from tests.apps.batch.conftest import (
    Rows,
    parts_of,
    planned,
)


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
