"""`spscanner eval`, from its arguments to the files it writes."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag import Scanner
from spscanner_rag.apps.cli import main
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.lab.evidence.calibration import Bins
from spscanner_rag.lab.evidence.sampling import is_held_out
from spscanner_rag.retrieval.shared_scanners import forget_shared_scanners
from spscanner_rag.text.units import Unit

SHORTER = ["scanner, sentence alone", "scanner, chunk of 1,024 tokens alone", "scanner, 1,024 tokens"]
TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end came."


def line(doc_id: str, source: str, **changes: Any) -> str:
    question = {"qid": f"{doc_id}-q", "question": "Which otter swims?", "evidence": [[4, 9]]}
    return json.dumps(
        {"doc_id": doc_id, "source": source, "split": "dev", "text": TEXT, "questions": [question], **changes}
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join([line("d1", "a"), line("d2", "a"), line("d3", "b")]) + "\n", encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return main(["eval", *map(str, arguments)])


def test_writes_rows_and_a_page(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--unit", "sentence,chunk", "--out", out) == 0
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    recall = {(r["source"], r["unit"]): r["value"] for r in rows if r["metric"] == "recall" and r["k"] == 1}
    assert recall == {(s, u): 1.0 for s in ("a", "b", "macro", "micro") for u in ("sentence", "chunk")}
    keys = "source split retriever unit metric k value ci_low ci_high questions documents".split()
    assert all(list(row) == keys for row in rows)
    with (out / "results.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    assert "bm25, chunks" in (out / "results.html").read_text(encoding="utf-8")
    assert len((out / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 6
    printed = capsys.readouterr().out
    assert re.search(r"macro\W+bm25\W+100\.0\W+100\.0", printed)
    assert re.search(r"micro\W+bm25, chunks\W+100\.0", printed)


@pytest.mark.slow
def test_the_scanner_against_bm25(
    data: Path, tmp_path: Path, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(Scanner, "from_pretrained", _only(tiny_checkpoint))
        assert run(data, "--retrievers", "scanner,bm25", "--context-ablation", "--out", out) == 0
    forget_shared_scanners()  # the tiny one stands for the bundled one there
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    names = {row["retriever"] for row in rows}
    assert names == {"scanner", "bm25", *SHORTER}
    differences = json.loads((out / "differences.json").read_text(encoding="utf-8"))
    assert [row["second"] for row in differences if row["metric"] == "recall@10"] == [
        "bm25",
        *SHORTER,
    ]


def _only(folder: Path) -> Any:
    load = Scanner.from_pretrained
    return lambda model=None, **options: load(model or folder, **options)


def test_a_run_resumes_and_a_retriever_may_be_added(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    first = (out / "records.jsonl").read_text(encoding="utf-8")
    assert run(data, "--retrievers", "bm25", "--unit", "chunk", "--out", out) == 0
    assert (out / "records.jsonl").read_text(encoding="utf-8").startswith(first)


def test_an_old_run_resumes(data: Path, tmp_path: Path) -> None:
    """Records as they were written before calibration and rotation came."""
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    rows = (out / "results.json").read_text(encoding="utf-8")
    assert set(json.loads((out / "run.json").read_text(encoding="utf-8"))) == set(
        "format max_questions seed held_out device dtype trust_remote_code questions version retrievers".split()
    )
    path = out / "records.jsonl"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        assert record.pop("answerable") is True
        record |= {"gigaflops": None, "gigaflops_padded": None}
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    before = path.read_bytes()
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    assert path.read_bytes() == before
    assert (out / "results.json").read_text(encoding="utf-8") == rows


class Titled:
    """In place of `Propositions`: keeps the title that it has for each text it scores."""

    seen: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, *_: object, headings: dict[str, str], device: str) -> None:
        self.headings = headings

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        self.seen.append((text, self.headings[text]))
        return np.zeros(len(units), np.float32)


@pytest.mark.parametrize("rotate", [False, True])
def test_propositions_get_the_titles_of_the_documents(
    rotate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.baselines.propositions.Propositions", Titled)
    monkeypatch.setattr(Dense, "__init__", lambda self, device: None)
    monkeypatch.setattr(Titled, "seen", [])
    data = tmp_path / "data.jsonl"
    texts = {
        name: " ".join(f"{name} {number} swims here." for number in range(40)) for name in ("Otter", "Heron")
    }
    lines = [line(name, "a", title=f"The {name}", text=text) for name, text in texts.items()]
    data.write_text("\n".join(lines), encoding="utf-8")
    options = ["--rotate"] if rotate else []
    assert run(data, "--retrievers", "propositions:any", *options, "--out", tmp_path / "out") == 0
    assert len(Titled.seen) == (4 if rotate else 2)
    assert any(text not in texts.values() for text, _ in Titled.seen) == rotate
    assert all(title == f"The {text.split()[0]}" for text, title in Titled.seen)


# Calibration


@pytest.fixture
def half_answerable(tmp_path: Path) -> Path:
    """Of each document a question that it answers and one that it does not; of one only the latter."""
    absent = {"qid": "absent", "question": "Who paid?", "evidence": [], "answerable": False}
    present = {"qid": "present", "question": "Which otter swims?", "evidence": [[4, 9]]}
    lines = [line(f"d{n}", "a", questions=[present, absent | {"qid": f"absent{n}"}]) for n in range(3)]
    path = tmp_path / "half.jsonl"
    path.write_text("\n".join([*lines, line("d3", "b", questions=[absent])]), encoding="utf-8")
    return path


def test_calibration(
    half_answerable: Path, tmp_path: Path, tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    retrievers = f"bm25,scanner:{tiny_checkpoint}"
    assert run(half_answerable, "--retrievers", retrievers, "--calibration", "--out", out) == 0
    found = json.loads((out / "calibration.json").read_text(encoding="utf-8"))
    assert (found["threshold"], found["left_out"]) == (0.5, ["bm25"])
    rows = {row["source"]: row for row in found["rows"]}
    scanner = Scanner.from_pretrained(tiny_checkpoint)
    scores = scanner.scan("Which otter swims?", TEXT).scores
    expected = Bins.of(scores, [True, False, False, False, False]).calibration_error()
    assert rows["a"]["calibration_error"] == pytest.approx(expected, abs=1e-5)
    assert rows["a"]["sentences"] == 15
    assert rows["a"]["hit_rate"]["value"] == float(scores.max() >= 0.5)
    absent = scanner.scan("Who paid?", TEXT).scores
    assert rows["a"]["false_alarm_rate"]["value"] == float(absent.max() >= 0.5)
    assert rows["a"]["auroc"] == float(scores.max() > absent.max())
    assert (rows["b"]["hit_rate"], rows["b"]["false_alarm_rate"]["questions"]) == (None, 1)
    for text in (
        capsys.readouterr().out,
        (out / "results.md").read_text(encoding="utf-8"),
        (out / "results.html").read_text(encoding="utf-8"),
    ):
        assert "false alarms" in text
        assert re.search(r"scores are not\s+probabilities:\s+bm25\.", text)
        assert "Reliability" in text
    assert run(half_answerable, "--retrievers", retrievers, "--out", plain) == 0
    written = [json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in (out, plain)]
    assert written[0].pop("calibration")
    assert written[0] == written[1]
    for name in ("differences.json", "results.json"):
        written = [json.loads((folder / name).read_text(encoding="utf-8")) for folder in (out, plain)]
        timed = ("seconds", "peak_megabytes")  # which differ from run to run
        assert [[row for row in rows if row["metric"] not in timed] for rows in written] == [
            [row for row in written[1] if row["metric"] not in timed]
        ] * 2  # what is unanswerable is in no metric


def test_a_calibration_resumes(
    half_answerable: Path, tmp_path: Path, tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [half_answerable, "--retrievers", f"scanner:{tiny_checkpoint}", "--calibration", "--out", out]
    assert run(*arguments) == 0
    found = json.loads((out / "calibration.json").read_text(encoding="utf-8"))
    records = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(records) == 7
    for kept in (7, 4, 0):
        (out / "records.jsonl").write_bytes(b"".join(records[:kept]))
        (out / "calibration.json").unlink()
        assert run(*arguments) == 0
        assert json.loads((out / "calibration.json").read_text(encoding="utf-8")) == found
        assert len((out / "records.jsonl").read_bytes().splitlines()) == 7
    capsys.readouterr()
    assert run(*arguments[:3], "--out", out) == 2
    assert "calibration: " in capsys.readouterr().err


# Rotation


@pytest.fixture
def long_data(tmp_path: Path) -> Path:
    sentences = [f"On day {number} of the walk an animal crossed the road slowly." for number in range(40)]
    sentences[17] = "The otter swims across the river while the moon rises slowly."
    text = " ".join(sentences)
    start = text.index("The otter")
    asked = {"qid": "q", "question": "Which otter swims?", "evidence": [[start, start + 9]]}
    wide = {"qid": "wide", "question": "When?", "evidence": [[0, len(text)]]}
    lines = [line(f"d{n}", "a", text=text, questions=[asked, wide]) for n in range(3)]
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join([*lines, line("d3", "b", text=text, questions=[wide])]), encoding="utf-8")
    return path


def test_rotation(
    long_data: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "250")  # so that no cell is broken
    out, scanner = tmp_path / "out", f"scanner:{tiny_checkpoint}"
    arguments = ["--retrievers", f"{scanner},bm25", "--unit", "sentence,chunk", "--rotate"]
    assert run(long_data, *arguments, "--out", out) == 0
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    for part, tenth in (("first", 1), ("last", 10)):
        own = [row for row in rows if f", {part} tenth" in row["retriever"]]
        assert {row["k"] for row in own if row["metric"] == "recall_by_position@10"} == {tenth}
    names = {row["retriever"] for row in rows if row["metric"] == "recall"}
    assert names == {f"{name}, {part} tenth" for name in (scanner, "bm25") for part in ("first", "last")}
    ratio = {
        (row["source"], row["unit"]): row["value"]
        for row in rows
        if row["metric"] == "recall_last_over_first" and row["retriever"] == "bm25"
    }
    assert ratio == {
        (source, unit): 1.0 for source in ("a", "macro", "micro") for unit in ("sentence", "chunk")
    }
    left_out = {row["source"]: row["value"] for row in rows if row["metric"] == "left_out"}
    assert left_out == {"a": 0.5, "b": 1.0, "micro": pytest.approx(4 / 7)}
    differences = json.loads((out / "differences.json").read_text(encoding="utf-8"))
    assert [(row["first"], row["second"]) for row in differences[::2]] == [
        (f"{scanner}, first tenth", f"{scanner}, last tenth"),
        ("bm25, first tenth", "bm25, last tenth"),
        ("bm25, first tenth, chunks", "bm25, last tenth, chunks"),
    ]
    for text in (
        capsys.readouterr().out,
        (out / "results.md").read_text(encoding="utf-8"),
        (out / "results.html").read_text(encoding="utf-8"),
    ):
        cells = " ".join(re.sub(r"<[^>]+>|\|", " ", text).split())
        assert "a bm25 3 (3) 100.0 100.0 100.0 (100.0 to 100.0)" in cells


def test_a_rotation_resumes_and_is_a_run_of_its_own(
    long_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(long_data, "--retrievers", "bm25", "--rotate", "--out", out) == 0
    rows = (out / "results.csv").read_text(encoding="utf-8")
    records = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(records) == 6
    (out / "records.jsonl").write_bytes(b"".join(records[:2]))
    assert run(long_data, "--retrievers", "bm25", "--rotate", "--out", out) == 0
    again = (out / "results.csv").read_text(encoding="utf-8")
    timed = ("seconds", "peak_megabytes")  # which differ from run to run
    assert [r for r in again.splitlines() if not any(t in r for t in timed)] == [
        r for r in rows.splitlines() if not any(t in r for t in timed)
    ]
    assert run(long_data, "--retrievers", "bm25", "--out", out) == 2
    assert "rotate: True, now None" in capsys.readouterr().err


# Corpora


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Documents whose questions name their animal, but not the sentence that answers; one question is of all."""
    lines = []
    for number, animal in enumerate(["otter", "heron", "badger", "vole", "newt", "toad"]):
        text = f"This is about the {animal}. It swims well. Rain fell all day. The end came. " * (1 + number)
        own = {"qid": "q", "question": f"How does the {animal} swim?", "evidence": [[text.index("It"), 40]]}
        shared = {"qid": "shared", "question": "What fell?", "evidence": [[45, 49]]}
        lines.append(line(f"d{number}", "a", title=animal, text=text, questions=[own, shared]))
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_corpus(
    many: Path,
    tmp_path: Path,
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    out, scanner = tmp_path / "out", f"scanner:{tiny_checkpoint}"
    arguments = ["--corpus", "--retrievers", f"{scanner},bm25", "--unit", "sentence,chunk", "--out", out]
    assert run(many, *arguments, "--first-stage", "bm25,none", "--read-documents", 2) == 0
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    read = {
        (row["retriever"], row["unit"]): row["value"]
        for row in rows
        if (row["metric"], row["source"]) == ("documents_read", "a")
    }
    assert read == {
        (f"{scanner}, 2 documents by bm25", "sentence"): 2,
        (scanner, "sentence"): 6,
        ("bm25", "sentence"): 6,
        ("bm25", "chunk"): 6,
    }
    ranks = {
        (r["retriever"], r["unit"]): r for r in rows if (r["metric"], r["source"]) == ("document_mrr", "a")
    }
    assert {row["questions"] for row in ranks.values()} == {6}
    assert ranks["bm25", "sentence"]["value"] == 1
    differences = json.loads((out / "differences.json").read_text(encoding="utf-8"))
    assert [row["metric"] for row in differences] == ["document_mrr", "recall@10"] * 2 + [
        "document_mrr",
        "recall_at_tokens@1000",
    ]
    for text in (
        capsys.readouterr().out,
        (out / "results.md").read_text(encoding="utf-8"),
        (out / "results.html").read_text(encoding="utf-8"),
    ):
        cells = " ".join(re.sub(r"<[^>]+>|\|", " ", text).split())
        assert re.search(r"a bm25 100\.0 \(100\.0 to 100\.0\) 100\.0 100\.0 100\.0", cells)
        assert re.search(r"a 6 [\d,]+ 6 6 0", cells)


def test_a_corpus_run_resumes_and_another_stage_may_be_added(
    many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(many, "--corpus", "--retrievers", "bm25", "--out", out) == 0
    records = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(records) == 6
    (out / "records.jsonl").write_bytes(b"".join(records[:4]))
    stages = ["--first-stage", "none,bm25"]
    assert run(many, "--corpus", "--retrievers", "bm25,hybrid:bm25+bm25", *stages, "--out", out) == 0
    assert len((out / "records.jsonl").read_bytes().splitlines()) == 12
    assert run(many, "--among", 3, "--retrievers", "bm25", "--out", out) == 2
    assert "among: None, now 3" in capsys.readouterr().err
    assert run(many, "--retrievers", "bm25", "--out", out) == 2


def test_among_the_hardest(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--retrievers", "bm25", "--document-characters", 100, "--max-questions", 4]
    assert run(many, "--among", 3, *arguments, "--out", out) == 0
    records = [json.loads(line) for line in (out / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(record["documents_read"], record["characters"] <= 100) for record in records] == [(3, True)] * 4


def test_sample_and_held_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--max-questions", 1, "--out", out) == 0
    assert len((out / "records.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert run(data, "--retrievers", "bm25", "--held-out", "a", "--out", tmp_path / "held") == 0
    lines = (tmp_path / "held" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    kept = {json.loads(line)["doc_id"] for line in lines}
    assert kept == {"d3"} | {doc_id for doc_id in ("d1", "d2") if is_held_out(doc_id)}
    assert kept != {"d1", "d2", "d3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retrievers", "elastic"], "retriever 'elastic' does not exist; expected one of: scanner"),
        (["--retrievers", "bm25,bm25"], "a name twice; expected each once"),
        (["--retrievers", ","], "expected names separated by commas"),
        (["--retrievers", "crossencoder"], "expected crossencoder:MODEL"),
        (["--retrievers", "bm25:x"], "bm25 takes no model name"),
        (["--retrievers", "hybrid:bm25"], "expected at least two"),
        (["--retrievers", "bm25", "--calibration"], "got bm25, whose scores are not probabilities"),
        (["--retrievers", "scanner", "--calibration", "--rotate"], "got --calibration and --rotate"),
        (["--retrievers", "bm25", "--rotate"], "none of 3 questions has all of its evidence within a tenth"),
        (["--retrievers", "bm25", "--unit", "page"], "expected one of sentence, chunk, passage, document"),
        (["--retrievers", "bm25", "--corpus"], "source 'b' has 1 document; expected at least 2"),
        (["--retrievers", "bm25", "--among", "1"], "--among"),
        (["--retrievers", "bm25", "--among", "3"], "source 'a' has 2 documents; expected at least 3"),
        (["--retrievers", "bm25", "--corpus", "--rotate"], "got --corpus and --rotate; expected one of them"),
        (["--retrievers", "bm25", "--among", "2", "--calibration"], "got --corpus and --calibration"),
        (["--retrievers", "bm25", "--first-stage", "bm25"], "got --first-stage without --corpus"),
        (
            ["--retrievers", "bm25", "--document-characters", "9"],
            "got --document-characters without --corpus",
        ),
        (["--corpus", "--first-stage", "elastic"], "retriever 'elastic' does not exist"),
        (["--corpus", "--first-stage", "bm25,bm25"], "a name twice"),
        (["--corpus", "--first-stage", "scanner"], "expected a retriever that ranks chunks"),
    ],
)
def test_bad_arguments(
    data: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(data, "--out", out, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (out / "results.json").exists()
    assert not out.exists()  # nothing half made


def test_bad_lines(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with data.open("a", encoding="utf-8") as file:
        file.write(
            "{broken\n" + line("d4", "a", questions=[{"qid": "q", "question": "?", "evidence": [[0, 999]]}])
        )
    assert run(data, "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert "data.jsonl, line 4" in capsys.readouterr().err
    assert run(data, "--retrievers", "bm25", "--skip-bad", "--out", tmp_path / "out") == 0
    errors = capsys.readouterr().err
    assert "line 4" in errors
    assert "line 5, question q" in errors
    assert "Lines left out: 2" in (tmp_path / "out" / "results.html").read_text(encoding="utf-8")


def test_other_arguments_in_the_same_folder(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "--retrievers", "bm25", "--out", tmp_path / "out") == 0
    assert run(data, "--retrievers", "bm25", "--seed", 1, "--out", tmp_path / "out") == 2
    assert "seed: 0, now 1" in capsys.readouterr().err


def test_no_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(line("d", "a", questions=[]), encoding="utf-8")
    assert run(path, "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert "no answerable question with evidence" in capsys.readouterr().err
    assert run(tmp_path / "missing.jsonl", "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'missing.jsonl'}: no such file; expected a file of questions, .jsonl" in said
    assert "check the path; docs/evaluation.md shows the format" in said
    assert run(tmp_path, "--retrievers", "bm25", "--out", tmp_path / "out") == 2
    assert f"{tmp_path}: a folder; expected a file of questions" in capsys.readouterr().err


def test_the_committed_questions(tmp_path: Path) -> None:
    questions = Path(__file__).resolve().parents[3] / "examples" / "data" / "questions.jsonl"
    assert run(questions, "--retrievers", "bm25", "--unit", "sentence,chunk", "--out", tmp_path / "out") == 0
    rows = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert {row["questions"] for row in rows if row["metric"] == "recall"} == {14}


# What identifies a run


def test_questions_whose_ids_repeat_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = tmp_path / "same.jsonl", tmp_path / "out"
    texts = [f"{TEXT} Page {number}." for number in range(10)]
    data.write_text("\n".join(line("d", "a", text=text) for text in texts), encoding="utf-8")
    assert run(data, "--retrievers", "bm25", "--out", out) == 2
    message = capsys.readouterr().err
    assert f"{data}, line 2: got question 'd-q' of document 'd' of source 'a' again" in message
    assert f"first in {data}, line 1;" in message
    assert not out.exists()
    assert run(data, "--retrievers", "bm25", "--skip-bad", "--out", out) == 0
    assert "Lines left out: 9" in (out / "results.html").read_text(encoding="utf-8")


def test_ids_may_repeat_in_another_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / f"{name}.jsonl" for name in ("one", "two", "three")]
    for path, source in zip(paths, "aba", strict=True):
        path.write_text(line("d", source), encoding="utf-8")
    out = tmp_path / "out"
    assert run(*paths[:2], "--retrievers", "bm25", "--out", out) == 0
    assert len((out / "records.jsonl").read_bytes().splitlines()) == 2
    assert run(*paths, "--retrievers", "bm25", "--out", tmp_path / "other") == 2
    assert f"{paths[2]}, line 1: got question 'd-q'" in capsys.readouterr().err


KINDS_OF_RUN: dict[str, list[object]] = {
    "plain": [],
    "calibration": ["--calibration"],
    "rotate": ["--rotate"],
    "corpus": ["--corpus"],
    "among": ["--among", 2],
}


def interrupted(out: Path) -> bytes:
    """Leave the first two records of a run."""
    records = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(records) > 2
    kept = b"".join(records[:2])
    (out / "records.jsonl").write_bytes(kept)
    return kept


@pytest.fixture
def ask(many: Path, long_data: Path, tiny_checkpoint: Path, tmp_path: Path) -> Callable[..., int]:
    """Makes a run of a kind, in the folder "out", by default with the checkpoint in the folder "checkpoint"."""
    folder = shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint")

    def ask(kind: str, retrievers: str = f"scanner:{folder}") -> int:
        data = long_data if kind == "rotate" else many
        return run(data, *KINDS_OF_RUN[kind], "--retrievers", retrievers, "--out", tmp_path / "out")

    return ask


@pytest.mark.parametrize("kind", KINDS_OF_RUN)
@pytest.mark.parametrize("key", ["text", "title"])
def test_changed_documents_are_refused(
    kind: str,
    key: str,
    ask: Callable[..., int],
    many: Path,
    long_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"scanner:{tmp_path / 'checkpoint'}" if kind == "calibration" else "bm25"
    assert ask(kind, name) == 0
    before = interrupted(tmp_path / "out")
    data = long_data if kind == "rotate" else many
    changed = [json.loads(one) for one in data.read_text(encoding="utf-8").splitlines()]
    for one in changed:
        one[key] = one.get(key, "") + " Snow."
    data.write_text("".join(json.dumps(one) + "\n" for one in changed), encoding="utf-8")
    assert ask(kind, name) == 2
    message = capsys.readouterr().err
    assert "questions: " in message
    assert "give the same again, or another --out" in message
    assert (tmp_path / "out" / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize("kind", KINDS_OF_RUN)
def test_a_checkpoint_replaced_in_place_is_refused(
    kind: str, ask: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kind) == 0
    before = interrupted(tmp_path / "out")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        path = tmp_path / "checkpoint" / name
        content = path.read_bytes()
        # white space after JSON, and another last bit of a weight: both are loaded without a complaint
        other = content + b" " if path.suffix == ".json" else content[:-1] + bytes([content[-1] ^ 1])
        path.write_bytes(other)
        assert ask(kind) == 2
        message = capsys.readouterr().err
        assert f"retrievers: scanner:{path.parent}: files: checkpoint/{name}: " in message
        assert "give the same again, or another --out" in message
        assert (tmp_path / "out" / "records.jsonl").read_bytes() == before
        path.write_bytes(content)
    assert ask(kind) == 0
    assert (tmp_path / "out" / "records.jsonl").read_bytes().startswith(before)


def test_a_changed_retriever_is_told_though_others_ran_between(
    ask: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("plain") == 0
    config = tmp_path / "checkpoint" / "config.json"
    config.write_bytes(config.read_bytes() + b" ")
    assert ask("plain", "bm25") == 0  # which has no model
    capsys.readouterr()
    assert ask("plain") == 2
    assert "checkpoint/config.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "records.jsonl: got records without run.json"),
        ("", "run.json: expected the JSON object"),
        ('{"seed": ', "run.json: expected the JSON object"),
        ('{"seed": 0, "questions": "0", "version": "0.1"}', "got results of another version"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "rotate", "corpus"])
def test_records_without_what_they_were_measured_on_are_refused(
    kind: str,
    content: str | None,
    message: str,
    ask: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    if content is not None:
        (out / "run.json").write_text(content, encoding="utf-8")
    assert ask(kind, "bm25") == 0  # no record depends on it
    before = interrupted(out)
    if content is None:
        (out / "run.json").unlink()
    else:
        (out / "run.json").write_text(content, encoding="utf-8")
    capsys.readouterr()
    assert ask(kind, "bm25") == 2
    told = capsys.readouterr().err
    assert message in told
    assert "give another --out, or delete the folder" in told
    assert (out / "records.jsonl").read_bytes() == before


def test_a_damaged_record_is_told_by_its_line(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    path = out / "records.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"qid"', b'"quid"') + third)
    assert run(data, "--retrievers", "bm25", "--out", out) == 2
    message = capsys.readouterr().err
    assert f"{path}, line 2: expected the record of a question, got the unknown key 'quid'" in message
    assert "delete this line" in message
    path.write_bytes(first + third)
    assert run(data, "--retrievers", "bm25", "--out", out) == 0
    assert len(path.read_bytes().splitlines()) == 3
