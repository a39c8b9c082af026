"""Parts of both forms have the same records."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.apps.batch.conftest import (
    Rows,
    Run,
    pairs,
)


def rounded(record: dict[str, Any]) -> dict[str, Any]:
    """A record with numbers rounded to float32, as Parquet stores them."""
    return {
        key: np.float32(value) if isinstance(value, float) else value
        for key, value in record.items()
    }


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
