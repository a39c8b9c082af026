"""Records, and the inputs of a run that `run.json` stores."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evaluation.records import Record, RecordFile, check_arguments
from spscanner_rag.baselines import BM25, Hybrid
from spscanner_rag.baselines.identity import identity_of
from spscanner_rag.baselines.remote_scanner import RemoteScanner
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.run_inputs import OtherRunError


def test_a_record_is_what_its_line_says() -> None:
    record = Record(
        "r",
        "sentence",
        "s",
        "dev",
        "d",
        "q",
        9,
        {"mrr": 1.0},
        ranking={"d2": 0.5, "d1": 0.25},
    )
    line = json.dumps(record.as_dict())
    read = Record.from_line(line)
    assert read == record
    assert list(read.ranking or ()) == ["d2", "d1"]
    assert not any(name in line for name in ("null", "highest", "bins"))


GOOD = Record("r", "sentence", "s", "dev", "d", "q", 9, {"mrr": 1.0}).as_dict()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", "missing 8 required positional arguments: 'retriever'"),
        ("[]", "a JSON list"),
        ("\0\0", "Expecting value"),
        (json.dumps(GOOD)[:-1] + ', "qid": "other"}', "the key 'qid' twice"),
        ("[" * 100_000, "recursion"),
        (json.dumps(GOOD | {"more": 1}), "unexpected keyword argument 'more'"),
        (
            json.dumps(
                {name: value for name, value in GOOD.items() if name != "metrics"}
            ),
            "argument: 'metrics'",
        ),
        *(
            (json.dumps(GOOD | {name: value}), f"under {name!r}")
            for name, value in {
                "doc_id": None,
                "qid": 1,
                "characters": -1,
                "metrics": {"mrr": "1"},
                "highest": float("nan"),
                "answerable": 1,
                "bins": [1],
                "ranking": [1],
            }.items()
        ),
    ],
)
def test_damaged_records_are_told_by_file_and_line(
    tmp_path: Path, line: str, message: str
) -> None:
    RecordFile(tmp_path, {"seed": 0}).add([Record.from_line(json.dumps(GOOD))])
    path = tmp_path / "records.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        RecordFile(tmp_path, {"seed": 0})
    assert str(caught.value).startswith(
        f"{path}, line 2: expected the record of a question"
    )
    assert path.read_bytes() == before


DIGEST, OTHER = "ab" * 32, "cd" * 32


def begin(folder: Path, arguments: dict[str, Any]) -> None:
    """A run with one stored record."""
    RecordFile(folder, arguments).add([Record.from_line(json.dumps(GOOD))])


def refusal(folder: Path, arguments: dict[str, Any]) -> str:
    with pytest.raises(OtherRunError) as caught:
        check_arguments(folder, arguments)
    return str(caught.value)


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    assert check_arguments(tmp_path / "out", {"seed": 0}) == {}
    assert not (tmp_path / "out").exists(), "a check writes nothing"
    for _ in range(2):
        begin(tmp_path, {"seed": 0, "held_out": [], "among": None})
    assert check_arguments(tmp_path, {"seed": 0, "held_out": [], "more": None}) == {}
    assert "seed: 0, now 1" in refusal(tmp_path, {"seed": 1, "held_out": []})


def test_a_difference_is_told_by_names_and_first_digits(tmp_path: Path) -> None:
    begin(tmp_path, {"corpora": {"a": DIGEST, "b": DIGEST}})
    message = refusal(tmp_path, {"corpora": {"a": DIGEST, "b": OTHER}})
    assert "(corpora: b: abababababab..., now cdcdcdcdcdcd...)" in message
    assert (
        refusal(tmp_path, {"corpora": {str(n): DIGEST for n in range(30)}}).count(
            ", now "
        )
        == 6
    )


def test_scanners_of_both_runs_must_be_the_same(tmp_path: Path) -> None:
    one, other = {"checkpoint": DIGEST}, {"checkpoint": OTHER}
    begin(
        tmp_path, {"retrievers": {"bm25": {"parameters": {"k1": 0.9}}, "scanner": one}}
    )  # from an older version
    known = check_arguments(tmp_path, {"retrievers": {"dense": {}, "bm25": {}}})
    assert known == {"bm25": {"parameters": {"k1": 0.9}}, "scanner": one}
    RecordFile(tmp_path, {"retrievers": {"bm25": {}}})
    assert check_arguments(tmp_path, {}) == {
        "bm25": {},
        "scanner": one,
    }  # before anything is loaded
    message = refusal(tmp_path, {"retrievers": {"scanner": other}})
    assert "retrievers: scanner: checkpoint: abababababab..., now cdcd" in message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"format": 2, "seed": 0}',  # from an older version
        b'{"format": 3, "retrievers": 1}',
        b'{"format": 3, "seed": 0, "seed": 0}',
        b"[" * 100_000,
    ],
)
def test_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    assert (
        check_arguments(tmp_path, {"seed": 0}) == {}
    )  # without records the file is written again
    (tmp_path / "records.jsonl").write_bytes(b"{}\n")
    message = refusal(tmp_path, {"seed": 0})
    assert message.startswith(str(tmp_path))
    assert "another --out" in message
    path.unlink()
    assert "records without run.json" in refusal(tmp_path, {"seed": 0})


def test_only_scanners_are_identified_alone_or_in_parts(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_checkpoint, tmp_path / "one"))
    scanner = Scanner.from_pretrained(folder)
    (folder / "training_state.pt").write_bytes(b"of no effect")
    identity = identity_of(scanner)
    assert identity["checkpoint"] == scanner.checkpoint.fingerprint()
    assert identity_of(BM25()) == identity_of(Hybrid([BM25(), BM25()])) == {}
    parts = {f"2. {key}": value for key, value in identity.items()}
    assert identity_of(Hybrid([BM25(), scanner])) == parts
    (folder / "word_vectors.safetensors").write_bytes(b"vectors")
    assert identity_of(scanner)["checkpoint"] != identity["checkpoint"]
    remote = RemoteScanner("http://127.0.0.1:1")
    remote.__dict__["_model"] = {
        "id": "m",
        "sha256": DIGEST,
        "dtype": "float32",
        "device": "cpu",
    }
    assert identity_of(remote) == {"checkpoint": DIGEST, "dtype": "float32"}
