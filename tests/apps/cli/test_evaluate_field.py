"""`spscanner eval` with cut-offs, folders in BEIR's layout, and rerankers by language models."""

import json
from pathlib import Path

import pytest

from spscanner_rag.apps.cli import main

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end came."
MODEL = """
import re
from pathlib import Path

def model(prompt):
    with open(Path(__file__).with_suffix(".asked"), "a") as file:
        file.write("x")
    numbers = re.findall(r"^\\[(\\d+)\\]", prompt, re.MULTILINE)
    return " > ".join(f"[{number}]" for number in reversed(numbers))
"""


def run(*arguments: object) -> int:
    return main(["eval", *map(str, arguments)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    question = {"qid": "q", "question": "Which otter swims?", "evidence": [[4, 9]], "answers": ["otter"]}
    document = {"doc_id": "d1", "source": "a", "split": "dev", "text": TEXT, "questions": [question]}
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(document) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "animals"
    (folder / "qrels").mkdir(parents=True)
    names = ["otter", "heron", "badger"]
    corpus = [{"_id": name, "title": name, "text": f"The {name} rests. It is late."} for name in names]
    queries = [{"_id": f"q{i}", "text": f"Where is the {name}?"} for i, name in enumerate(names)]
    for file, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    grades = "".join(f"q{i}\t{name}\t{2 - i % 2}\n" for i, name in enumerate(names))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    return folder


def rows_of(out: Path) -> dict[tuple[str, str, int | None], float]:
    rows = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {(r["retriever"], r["metric"], r["k"]): r["value"] for r in rows if r["source"] == "macro"}


def test_free_cutoffs(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(data, "--retrievers", "bm25", "--cutoffs", "20,2", "--out", out) == 0
    rows = rows_of(out)
    assert {k for _, metric, k in rows if metric == "recall"} == {2, 20}
    assert rows["bm25", "map", None] == 1.0 == rows["bm25", "answer_recall_at_words", 50]
    assert "recall at k (@k), nDCG@20, MRR and MAP" in capsys.readouterr().out
    assert "nDCG@20" in (out / "results.md").read_text()
    assert run(data, "--retrievers", "bm25", "--out", out) == 2
    assert "cutoffs" in capsys.readouterr().err
    assert run(data, "--cutoffs", "5,many", "--out", tmp_path / "no") == 2
    assert "--cutoffs: got '5,many'; expected whole numbers" in capsys.readouterr().err


def test_a_folder_of_beir(beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    names = "bm25,cascade:bm25>bm25@2"
    command = (beir, "--retrievers", names, "--aggregation", "sum", "--cutoffs", "1,3", "--out", out)
    assert run(*command) == 0
    rows = rows_of(out)
    assert rows["bm25", "recall", 1] == rows["cascade:bm25>bm25@2", "ndcg", 3] == 1.0
    assert len(list(out.glob("*.trec"))) == 2
    assert "3 queries on 3 documents of animals" in capsys.readouterr().out.replace("\n", " ")
    before = (out / "records.jsonl").read_bytes()
    assert run(*command) == 0, "it resumes, with nothing left to ask"
    assert (out / "records.jsonl").read_bytes() == before
    capsys.readouterr()
    assert run(beir, "--among", 2, "--out", tmp_path / "no") == 2
    assert "got --among with a folder in BEIR's layout" in capsys.readouterr().err
    assert run(beir, "--aggregation", "median", "--out", tmp_path / "no") == 2
    assert "aggregation is 'median'" in capsys.readouterr().err


def test_a_language_model_is_asked_once(data: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "mine.py", tmp_path / "out"
    file.write_text(MODEL)
    names = f"bm25,listwise:bm25>{file}:model@3,hybrid:bm25+setwise:bm25>{file}:model@2"
    assert run(data, "--retrievers", names, "--out", out) == 0
    asked = len(file.with_suffix(".asked").read_text())
    assert asked == len((out / "replies.jsonl").read_text().splitlines())
    (out / "records.jsonl").unlink()
    (out / "run.json").unlink()
    assert run(data, "--retrievers", names, "--out", out) == 0
    assert len(file.with_suffix(".asked").read_text()) == asked, "the replies were kept"


def test_aggregation_needs_a_corpus(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "--aggregation", "sum", "--out", tmp_path / "no") == 2
    assert "got --aggregation without --corpus" in capsys.readouterr().err
