import json
from pathlib import Path

import pytest

from spscanner_rag.evaluation.records import Record, RecordFile, RunMismatchError


def test_a_record_is_what_its_line_says() -> None:
    record = Record("r", "sentence", "s", "dev", "d", "q", 9, {"mrr": 1.0}, positions={"10": [None, 1.0]})
    line = json.dumps(record.as_dict())
    assert Record.read(line) == record
    assert "null" in line  # of the positions
    assert "gigaflops" not in line
    assert "highest" not in line


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    RecordFile(tmp_path, {"seed": 0, "held_out": []})
    RecordFile(tmp_path, {"seed": 0, "held_out": []})
    with pytest.raises(RunMismatchError, match="seed: 0, now 1"):
        RecordFile(tmp_path, {"seed": 1, "held_out": []})
