import gzip
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.__main__ import main
from benchmarks.excerpts import write_excerpts
from spscanner_rag.lab.evidence.questions import Document, Question, read_documents

PLAN = """
train = ["walks"]
validation = ["roads"]
held_out = ["walks"]
text = ["tales"]
questions = 2
characters = 300

[recipe]
steps = 2
sequence_tokens = [128]
sequences_per_step = 2
learning_rate = 1e-3
vocab_size = 300
final_validation_questions = 1
source_weights = { walks = 0.5 }

[config]
d_model = 16
n_layer = 1
ssm_cfg = { layer = "Mamba2", d_state = 8, headdim = 8 }

[stages.language-model]
stage = "language-model"

[rows.first]

[rows.normalized]
length_normalized = { scanner = "first", questions = 3 }

[rows.wide]
config = { d_model = 32 }

[rows.language-model-first]
stages = ["language-model"]
recipe = { reanchor_tokens = 64 }

[rows.embedding-start]
recipe = { embedding_start = true }
"""
ANIMALS = ("badger", "heron", "otter", "lynx")


@given(
    before=st.integers(0, 400),
    evidence=st.integers(1, 60),
    after=st.integers(0, 400),
    characters=st.integers(50, 300),
)
def test_an_excerpt_holds_the_evidence_and_spans_that_fit(
    tmp_path_factory: pytest.TempPathFactory, before: int, evidence: int, after: int, characters: int
) -> None:
    words = ("So it was. It went on. " * 20)[:before]
    text = words + "E" * evidence + ("Then it ended. " * 30)[:after]
    second = len(text) - 1, len(text)
    question = Question("q", "What?", ((before, before + evidence), second))
    path = tmp_path_factory.getbasetemp() / "excerpts.jsonl"
    write_excerpts([Document("d", "s", "", text, (question,))], 5, characters, path)
    (document,) = read_documents([path])
    assert document.text in text
    assert len(document.text) <= max(characters, 1)
    (found,) = document.questions
    first = document.text[slice(*found.evidence[0])]
    assert first == "E" * min(evidence, characters)
    assert (
        len(document.text) == len(text) or len(document.text) > characters - 25
    )  # cut at a sentence's start


def write_source(folder: Path, source: str, split: str, documents: int) -> None:
    (folder / source).mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / source / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(documents):
            text = " ".join(f"On day {number} in {source} a {animal} crossed the road." for animal in ANIMALS)
            start = text.index("a otter")
            question = {
                "qid": f"{number}",
                "question": "Where was the otter?",
                "evidence": [[start, start + 7]],
            }
            line = {"doc_id": f"{source}-{number}", "source": source, "text": text, "questions": [question]}
            file.write(json.dumps(line) + "\n")


@pytest.mark.slow
def test_rows_are_trained_and_compared_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_source(tmp_path / "qa", "walks", "train", 40)
    write_source(tmp_path / "qa", "roads", "dev", 3)
    (tmp_path / "text").mkdir()
    with lzma.open(tmp_path / "text" / "tales.txt.xz", "wt", encoding="utf-8") as file:
        file.write("Once upon a time a badger met a heron by the river.\n" * 200)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    report = tmp_path / "report.json"

    def run(*rows: str) -> dict[str, dict[str, float]]:
        words = ["--plan", plan, "--qa", tmp_path / "qa", "--text", tmp_path / "text"]
        words += ["--results", tmp_path / "results", "--out", report]
        monkeypatch.setattr("sys.argv", ["benchmarks", "ablation", *rows, *map(str, words)])
        assert main() == 0
        results: dict[str, dict[str, float]] = json.loads(report.read_text(encoding="utf-8"))["results"]
        return results

    assert set(run("first")) == {"bm25", "first"}
    found = run("all")
    assert list(found) == ["bm25", "first", "normalized", "wide", "language-model-first", "embedding-start"]
    assert "recall@10 minus first" not in found["first"]
    assert 0 <= found["wide"]["p recall@10"] <= 1
    assert "hours" not in found["normalized"]  # it is the first one's
    assert found["language-model-first"]["million tokens"] >= found["first"]["million tokens"] > 0
    shape = json.loads((tmp_path / "results" / "wide" / "config.json").read_text(encoding="utf-8"))
    assert shape["d_model"] == 32
    kept = (tmp_path / "results" / "language-model-first" / "config.json").read_text(encoding="utf-8")
    assert json.loads(kept)["spscanner"]["reanchor_tokens"] == 64
    capfd.readouterr()
    again = run()  # what is there is not trained again
    assert again == found
    assert "recall " not in capfd.readouterr().err
    with pytest.raises(SystemExit, match="unknown row 'tall'; expected some of first, normalized"):
        run("tall")
