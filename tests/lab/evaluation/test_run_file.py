"""What `run.json` tells apart."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.run_file import RunMismatchError, check_arguments, write_arguments

DIGEST, OTHER = "ab" * 32, "cd" * 32


def refusal(folder: Path, arguments: dict[str, Any]) -> str:
    with pytest.raises(RunMismatchError) as caught:
        check_arguments(folder, arguments)
    return str(caught.value)


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    RecordFile(tmp_path, {"seed": 0, "held_out": []})
    RecordFile(tmp_path, {"seed": 0, "held_out": []})
    with pytest.raises(RunMismatchError, match="seed: 0, now 1"):
        RecordFile(tmp_path, {"seed": 1, "held_out": []})


def test_nothing_is_written_by_a_check(tmp_path: Path) -> None:
    assert check_arguments(tmp_path / "out", {"seed": 0}) == {}
    assert not (tmp_path / "out").exists()


def test_none_is_no_argument(tmp_path: Path) -> None:
    write_arguments(tmp_path, {"seed": 0, "among": None}, {})
    assert check_arguments(tmp_path, {"seed": 0, "more": None}) == {}


def test_a_difference_is_told_by_names_and_first_digits(tmp_path: Path) -> None:
    write_arguments(tmp_path, {"corpora": {"a": DIGEST, "b": DIGEST}}, {})
    message = refusal(tmp_path, {"corpora": {"a": DIGEST, "b": OTHER}})
    assert "(corpora: b: abababababab..., now cdcdcdcdcdcd...)" in message
    assert refusal(tmp_path, {"corpora": {str(n): DIGEST for n in range(30)}}).count(", now ") == 6


def test_retrievers_of_both_runs_must_be_the_same(tmp_path: Path) -> None:
    one, other = {"files": {"m/config.json": DIGEST}}, {"files": {"m/config.json": OTHER}}
    write_arguments(tmp_path, {"retrievers": {"dense": one}}, {})
    known = check_arguments(tmp_path, {"retrievers": {"bm25": {}}})
    assert known == {"dense": one}
    write_arguments(tmp_path, {"retrievers": {"bm25": {}}}, known)
    assert check_arguments(tmp_path, {}) == {"dense": one, "bm25": {}}  # before anything is loaded
    assert "retrievers: dense: files: m/config.json: abab" in refusal(
        tmp_path, {"retrievers": {"dense": other}}
    )
    assert "retrievers: bm25: k1: None, now 2" in refusal(tmp_path, {"retrievers": {"bm25": {"k1": 2}}})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"format": 2, "retrievers": 1}',
        b'{"format": 2, "seed": 0, "seed": 0}',
        b"[" * 100_000,
    ],
)
def test_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert check_arguments(tmp_path, {"seed": 0}) == {}  # no records: written again
    (tmp_path / "records.jsonl").write_bytes(b"{}\n")
    message = refusal(tmp_path, {"seed": 0})
    assert message.startswith(f"{path}: ")
    assert "give another --out, or delete the folder" in message
    path.unlink()
    assert "records without run.json" in refusal(tmp_path, {"seed": 0})


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RecordFile(tmp_path, {"retrievers": {"r": {}}})
    file.add([Record("r", "sentence", "s", "dev", "d", "q", 9, {"mrr": 1.0})])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            RecordFile(tmp_path, {"retrievers": {"r": {}, "other": {}}})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(RecordFile(tmp_path, {"retrievers": {"r": {}}}).records) == 1
