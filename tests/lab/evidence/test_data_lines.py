"""Lines of compressed files never fill the memory."""

import gzip
import lzma
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence import data_lines
from spscanner_lab.evidence.data_lines import DataError, numbered_lines
from spscanner_lab.evidence.questions import read_documents


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("line", [b" " * 20_000_000, b" " * 999 + b"\n"])
def test_decompression_bombs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any, line: bytes
) -> None:
    monkeypatch.setattr(data_lines, "LEAST_LIMIT", 3_000_000)
    path = tmp_path / f"data.jsonl.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack(line * (20_000_000 // len(line))))
    tracemalloc.start()
    with pytest.raises(
        DataError, match=r"expands to more than .*decompress it and give the result"
    ) as caught:
        for _ in numbered_lines(path):
            pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith(
        f"{path}: got a compressed file of {path.stat().st_size:,} bytes"
    )
    assert peak < 20_000_000
    errors: list[DataError] = []
    assert list(read_documents([path], errors.append)) == []
    assert len(errors) == 1
