"""Where a result goes."""

import io
import os
import sys
from pathlib import Path

import pytest

from spscanner_rag.files.output import write_output


def test_a_result_goes_to_a_file_or_to_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    write_output("é", tmp_path / "out", is_page=False)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "é"
    write_output("é", None, is_page=False)
    write_output("é", None, is_page=True)  # in UTF-8, as a page declares
    assert stream.buffer.getvalue() == b"\xe9\xc3\xa9"
    monkeypatch.setattr(sys, "stdout", text := io.StringIO())
    write_output("é", None, is_page=True)
    assert text.getvalue() == "é"


def test_old_leftovers_of_killed_programs_are_removed(tmp_path: Path) -> None:
    old, fresh = (tmp_path / f".out.html.{digit * 32}.part" for digit in "01")
    old.touch()
    fresh.touch()
    os.utime(old, (0, 0))
    write_output("page", tmp_path / "out.html", is_page=True)
    assert {path.name for path in tmp_path.iterdir()} == {fresh.name, "out.html"}
