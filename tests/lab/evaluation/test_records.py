import json
import re
from pathlib import Path

import pytest

from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.run_file import RunMismatchError


def test_a_record_is_what_its_line_says() -> None:
    record = Record("r", "sentence", "s", "dev", "d", "q", 9, {"mrr": 1.0}, positions={"10": [None, 1.0]})
    line = json.dumps(record.as_dict())
    assert Record.read(line) == record
    assert "null" in line  # of the positions
    assert "gigaflops" not in line
    assert "highest" not in line


GOOD = Record("r", "sentence", "s", "dev", "d", "q", 9, {"mrr": 1.0}).as_dict()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "no 'retriever'"),
        ("[]", "a JSON list"),
        ("\0\0", "Expecting value"),
        (json.dumps(GOOD)[:-1] + ', "qid": "other"}', "the key 'qid' twice"),
        ("[" * 100_000, "recursion"),
        (json.dumps(GOOD | {"more": 1}), "the unknown key 'more'"),
        (json.dumps({name: value for name, value in GOOD.items() if name != "metrics"}), "no 'metrics'"),
        *(
            (json.dumps(GOOD | {name: value}), f"under {name!r}")
            for name, value in {
                "doc_id": None,
                "qid": 1,
                "characters": 1.5,
                "metrics": {"mrr": "1"},
                "tokens": [1],
                "positions": {"10": 1},
                "seconds": float("nan"),
                "answerable": 1,
                "bins": [1],
                "documents_read": -1,
            }.items()
        ),
    ],
)
def test_damaged_records_are_told_by_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    RecordFile(tmp_path, {"seed": 0}).add([Record.read(json.dumps(GOOD))])
    path = tmp_path / "records.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        RecordFile(tmp_path, {"seed": 0})
    assert str(caught.value).startswith(f"{path}, line 2: expected the record of a question")
    assert path.read_bytes() == before


def test_a_retriever_that_run_json_does_not_identify(tmp_path: Path) -> None:
    RecordFile(tmp_path, {"retrievers": {"r": {}}}).add([Record.read(json.dumps(GOOD))])
    RecordFile(tmp_path, {"retrievers": {"other": {}}})
    varied = Record.read(json.dumps(GOOD | {"retriever": "r, first tenth"}))
    RecordFile(tmp_path, {"retrievers": {"r": {}}}).add([varied])
    content = json.loads((tmp_path / "run.json").read_bytes())
    assert set(content["retrievers"]) == {"r", "other"}
    del content["retrievers"]["r"]
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunMismatchError, match=r"records of 'r', whose model run\.json does not identify"):
        RecordFile(tmp_path, {"retrievers": {"r": {}}})
