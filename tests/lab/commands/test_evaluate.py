"""`spscanner eval`, from its arguments to the files that it writes."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence.calibration import bins_of, calibration_error
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_rag import Scanner
from spscanner_rag.baselines.register import LoadOptions
from spscanner_rag.text.units import Unit
from tests.command_line import Output, Run, read_lines, write_lines
from tests.fakes import ScoredBy

SHORTER = ["scanner, sentence alone", "scanner, chunk of 1,024 tokens alone"]
TEXT = (
    "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end"
    " came."
)
TIMED = ("seconds", "seconds_computing", "peak_megabytes")  # differ from run to run


def line(doc_id: str, source: str, **changes: Any) -> dict[str, Any]:
    question = {
        "qid": f"{doc_id}-q",
        "question": "Which otter swims?",
        "evidence": [[4, 9]],
        "answers": ["otter"],
    }
    document = {
        "doc_id": doc_id,
        "source": source,
        "split": "dev",
        "text": TEXT,
        "questions": [question],
    }
    return document | changes


def rows_of(
    out: Path, name: str = "results.json", **wanted: object
) -> list[dict[str, Any]]:
    """The rows of a result that have these values."""
    rows = json.loads((out / name).read_text(encoding="utf-8"))
    return [
        row for row in rows if all(row[key] == value for key, value in wanted.items())
    ]


def shown_in(told: Output, out: Path) -> list[str]:
    """What the terminal and both reports show, without markup or line breaks."""
    texts = [
        told.out,
        *(
            (out / name).read_text(encoding="utf-8")
            for name in ("results.md", "results.html")
        ),
    ]
    return [" ".join(re.sub(r"<[^>]+>|\|", " ", text).split()) for text in texts]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def evaluate(run: Run, out: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `spscanner eval`, by default with BM25 and into the folder "out"."""
    monkeypatch.setenv("COLUMNS", "250")  # so that no cell is broken

    def evaluate(*arguments: object) -> Output:
        given = list(map(str, arguments))
        given += [] if "--retrievers" in given else ["--retrievers", "bm25"]
        return run("eval", *given, *([] if "--out" in given else ["--out", out]))

    return evaluate


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "data.jsonl", line("d1", "a"), line("d2", "a"), line("d3", "b")
    )


@pytest.fixture
def half_answerable(tmp_path: Path) -> Path:
    """Documents with an answerable and an unanswerable question each.

    One document has only the latter.
    """
    absent = {
        "qid": "absent",
        "question": "Who paid?",
        "evidence": [],
        "answerable": False,
    }
    present = {"qid": "present", "question": "Which otter swims?", "evidence": [[4, 9]]}
    lines = [
        line(f"d{n}", "a", questions=[present, absent | {"qid": f"absent{n}"}])
        for n in range(3)
    ]
    return write_lines(
        tmp_path / "half.jsonl", *lines, line("d3", "b", questions=[absent])
    )


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Documents whose questions name their animal, but not the sentence that answers.

    One question is in all.
    """
    lines = []
    for number, animal in enumerate(
        ["otter", "heron", "badger", "vole", "newt", "toad"]
    ):
        text = (
            f"This is about the {animal}. It swims well. Rain fell all day. The end"
            " came. " * (1 + number)
        )
        own = {
            "qid": "q",
            "question": f"How does the {animal} swim?",
            "evidence": [[text.index("It"), 40]],
        }
        shared = {"qid": "shared", "question": "What fell?", "evidence": [[45, 49]]}
        lines.append(
            line(f"d{number}", "a", title=animal, text=text, questions=[own, shared])
        )
    return write_lines(tmp_path / "many.jsonl", *lines)


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder, names = tmp_path / "animals", ["otter", "heron", "badger"]
    (folder / "qrels").mkdir(parents=True)
    corpus = [
        {"_id": name, "title": name, "text": f"The {name} rests. It is late."}
        for name in names
    ]
    write_lines(folder / "corpus.jsonl", *corpus)
    queries = [
        {"_id": f"q{i}", "text": f"Where is the {name}?"}
        for i, name in enumerate(names)
    ]
    write_lines(folder / "queries.jsonl", *queries)
    grades = "".join(f"q{i}\t{name}\t{2 - i % 2}\n" for i, name in enumerate(names))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    return folder


def test_writes_rows_and_a_page(evaluate: Run, data: Path, out: Path) -> None:
    told = evaluate(data, "--unit", "sentence,chunk")
    assert told.code == 0
    found = {
        (row["source"], row["unit"]): row["value"]
        for row in rows_of(out, metric="recall", k=1)
    }
    assert found == {
        (s, u): 1.0 for s in ("a", "b", "macro", "micro") for u in ("sentence", "chunk")
    }
    keys = "source split retriever unit metric k value ci_low ci_high".split()
    keys += ["questions", "documents"]
    assert all(list(row) == keys for row in rows_of(out))
    assert "bm25, chunks" in (out / "results.html").read_text(encoding="utf-8")
    assert len(read_lines(out / "records.jsonl")) == 6
    assert re.search(r"macro\W+bm25\W+100\.0\W+100\.0", told.out)
    assert re.search(r"micro\W+bm25, chunks\W+100\.0", told.out)


def test_a_published_scanner_and_its_shorter_contexts(
    evaluate: Run, data: Path, out: Path, published_checkpoint: Path
) -> None:
    name = f"scanner:{published_checkpoint}"
    assert (
        evaluate(
            data,
            "--retrievers",
            f"{name},bm25",
            "--context-ablation",
            "--dtype",
            "float32",
        ).code
        == 0
    )
    shorter = [each.replace("scanner", name, 1) for each in SHORTER]
    assert {row["retriever"] for row in rows_of(out)} == {name, "bm25", *shorter}
    tested = rows_of(out, "differences.json", metric="recall@10")
    assert [row["second"] for row in tested] == ["bm25", *shorter]


def test_retrievers_get_the_titles(
    evaluate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def titled(name: str, options: LoadOptions) -> ScoredBy:
        def logits(query: str, text: str, units: Sequence[Unit]) -> list[float]:
            seen.append((options.titles or {})[text])
            return [0.0] * len(units)

        return ScoredBy(logits)

    monkeypatch.setattr("spscanner_lab.commands.evaluation_scorers.scorer_of", titled)
    lines = [
        line(name, "a", title=f"The {name}", text=f"{name} swims.")
        for name in ("Otter", "Heron")
    ]
    assert evaluate(write_lines(tmp_path / "data.jsonl", *lines)).code == 0
    assert seen == ["The Otter", "The Heron"]


def test_calibration(
    evaluate: Run,
    half_answerable: Path,
    tmp_path: Path,
    out: Path,
    tiny_checkpoint: Path,
) -> None:
    retrievers = ("--retrievers", f"bm25,scanner:{tiny_checkpoint}")
    told = evaluate(half_answerable, *retrievers, "--calibration")
    assert told.code == 0
    found = json.loads((out / "calibration.json").read_text(encoding="utf-8"))
    assert (found["threshold"], found["left_out"]) == (0.5, ["bm25"])
    rows = {row["source"]: row for row in found["rows"]}
    scanner = Scanner.from_pretrained(tiny_checkpoint)
    scores = scanner.scan("Which otter swims?", TEXT).scores
    absent = scanner.scan("Who paid?", TEXT).scores
    expected = calibration_error(bins_of(scores, [True, False, False, False, False]))
    assert rows["a"]["calibration_error"] == pytest.approx(expected, abs=1e-5)
    assert rows["a"]["sentences"] == 15
    assert rows["a"]["hit_rate"]["value"] == float(scores.max() >= 0.5)
    assert rows["a"]["false_alarm_rate"]["value"] == float(absent.max() >= 0.5)
    assert rows["a"]["auroc"] == float(scores.max() > absent.max())
    assert (rows["b"]["hit_rate"], rows["b"]["false_alarm_rate"]["questions"]) == (
        None,
        1,
    )
    for text in shown_in(told, out):
        assert "scores are not probabilities: bm25." in text
        assert "false alarms" in text
        assert "Reliability" in text


def test_a_corpus(evaluate: Run, many: Path, out: Path, tiny_checkpoint: Path) -> None:
    scanner = f"scanner:{tiny_checkpoint}"
    names = ("--retrievers", f"{scanner},bm25", "--unit", "sentence,chunk")
    told = evaluate(
        many, "--corpus", *names, "--first-stage", "bm25,none", "--read-documents", 2
    )
    assert told.code == 0
    read = rows_of(out, metric="documents_read", source="a")
    assert {(row["retriever"], row["unit"]): row["value"] for row in read} == {
        (f"{scanner}, 2 documents by bm25", "sentence"): 2,
        (scanner, "sentence"): 6,
        ("bm25", "sentence"): 6,
        ("bm25", "chunk"): 6,
    }
    ranks = rows_of(out, metric="document_mrr", source="a")
    assert {row["questions"] for row in ranks} == {6}
    assert (
        rows_of(
            out, metric="document_mrr", source="a", retriever="bm25", unit="sentence"
        )[0]["value"]
        == 1
    )
    assert [row["metric"] for row in rows_of(out, "differences.json")] == [
        *["document_mrr", "recall@10"] * 2,
        "document_mrr",
        "recall_at_tokens@1000",
    ]
    for text in shown_in(told, out):
        assert re.search(r" bm25 100\.0( (\()?100\.0 to 100\.0(\))?)? 100\.0", text)
        assert re.search(r"a 6 [\d,]+ 6 6", text)


def test_forms_of_the_literature_and_the_work(
    evaluate: Run, many: Path, tmp_path: Path, tiny_checkpoint: Path
) -> None:
    names = ("--retrievers", f"scanner:{tiny_checkpoint}", "--first-stage", "none")
    rows = {}
    for form in ("MaxP", "max", "LongP"):
        out = tmp_path / form
        told = evaluate(many, "--corpus", *names, "--aggregation", form, "--out", out)
        assert told.code == 0, told.err
        (row,) = rows_of(out, metric="document_mrr", source="a")
        rows[form] = {**row, "unit": row["unit"]}
    assert rows["MaxP"] == rows["max"]
    assert [rows[form]["unit"] for form in rows] == ["sentence", "sentence", "document"]
    out = tmp_path / "max"
    (row,) = rows_of(out, metric="tflops", source="a")
    (padded,) = rows_of(out, metric="tflops_padded", source="a")
    assert 0 < row["value"] < padded["value"]
    report = " ".join((out / "results.md").read_text(encoding="utf-8").split())
    assert "| TFLOPs | TFLOPs, padded |" in report


def test_among_the_hardest(evaluate: Run, many: Path, out: Path) -> None:
    assert (
        evaluate(
            many, "--among", 3, "--document-characters", 100, "--max-questions", 4
        ).code
        == 0
    )
    records = read_lines(out / "records.jsonl")
    assert [each["metrics"]["documents_read"] for each in records] == [3] * 4
    assert all(each["characters"] <= 100 for each in records)


def test_free_cutoffs(evaluate: Run, data: Path, out: Path) -> None:
    told = evaluate(data, "--cutoffs", "20,2")
    assert told.code == 0
    assert {row["k"] for row in rows_of(out, metric="recall")} == {2, 20}
    assert rows_of(out, metric="map", source="macro")[0]["value"] == 1.0
    assert (
        rows_of(out, metric="answer_recall_at_words", k=50, source="macro")[0]["value"]
        == 1.0
    )
    assert "nDCG@20" in told.out
    assert "nDCG@20" in (out / "results.md").read_text()
    assert "cutoffs" in evaluate(data).err


def test_a_folder_of_beir(evaluate: Run, beir: Path, out: Path) -> None:
    names = ("--retrievers", "bm25,cascade:bm25>bm25@2")
    command = (beir, *names, "--aggregation", "sum", "--cutoffs", "1,3")
    told = evaluate(*command)
    assert told.code == 0
    for name, metric, k in (("bm25", "recall", 1), ("cascade:bm25>bm25@2", "ndcg", 3)):
        assert (
            rows_of(out, retriever=name, metric=metric, k=k, source="macro")[0]["value"]
            == 1.0
        )
    assert len(list(out.glob("*.trec"))) == 2
    assert "3 queries on 3 documents of animals" in told.out.replace("\n", " ")
    before = (out / "records.jsonl").read_bytes()
    assert evaluate(*command).code == 0, "it resumes, with nothing left to ask"
    assert (out / "records.jsonl").read_bytes() == before
    assert (
        "got --among with a folder in BEIR's layout" in evaluate(beir, "--among", 2).err
    )
    assert "aggregation is 'median'" in evaluate(beir, "--aggregation", "median").err


@pytest.mark.parametrize(
    "animals", [["otter"], ["otter", "heron"], ["otter", "heron", "marten"]]
)
def test_a_folder_of_the_chunking_evaluation(
    evaluate: Run, tmp_path: Path, out: Path, animals: list[str]
) -> None:
    folder = tmp_path / "chroma"
    (folder / "corpora").mkdir(parents=True)
    for animal in animals:
        (folder / "corpora" / f"{animal}.md").write_text(
            TEXT.replace("otter", animal), encoding="utf-8"
        )
    asked = [{"content": "The otter swims.", "start_index": 0, "end_index": 16}]
    quoted = json.dumps(asked).replace('"', '""')
    lines = f'question,references,corpus_id\nWhich otter swims?,"{quoted}",otter\n'
    (folder / "questions_df.csv").write_text(lines, encoding="utf-8")
    told = evaluate(folder)
    assert told.code == 0, told.err
    wanted = (
        ("character_recall", None, 1.0),
        ("iou", None, 1.0),
        ("iou", 1000, 16 / (82 * len(animals))),
    )
    for metric, k, value in wanted:
        (row,) = rows_of(out, metric=metric, k=k, source="macro")
        assert row["value"] == pytest.approx(value, abs=0.01), (metric, k)
    assert "The characters of the evidence" in (out / "results.md").read_text(
        encoding="utf-8"
    )


def test_sample_and_held_out(
    evaluate: Run, data: Path, tmp_path: Path, out: Path
) -> None:
    assert evaluate(data, "--max-questions", 1).code == 0
    assert len(read_lines(out / "records.jsonl")) == 2
    assert evaluate(data, "--held-out", "a", "--out", tmp_path / "held").code == 0
    kept = {each["doc_id"] for each in read_lines(tmp_path / "held" / "records.jsonl")}
    assert kept == {"d3"} | {doc_id for doc_id in ("d1", "d2") if is_held_out(doc_id)}
    assert kept != {"d1", "d2", "d3"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retrievers", "bm25,bm25"], "a name twice; expected each once"),
        (["--retrievers", ","], "expected names separated by commas"),
        (["--retrievers", "hybrid:bm25"], "expected at least two"),
        (["--calibration"], "got bm25, whose scores are not probabilities"),
        (["--unit", "page"], "expected one of sentence, chunk, passage, document"),
        (["--corpus"], "source 'b' has 1 document; expected at least 2"),
        (["--among", "1"], "--among"),
        (["--among", "3"], "source 'a' has 2 documents; expected at least 3"),
        (["--among", "2", "--calibration"], "got --calibration and --corpus"),
        (["--first-stage", "bm25"], "got --first-stage without --corpus"),
        (["--document-characters", "9"], "got --document-characters without --corpus"),
        (["--aggregation", "sum"], "got --aggregation without --corpus"),
        (["--cutoffs", "5,many"], "--cutoffs: got '5,many'; expected whole numbers"),
        (
            ["--corpus", "--first-stage", "elastic"],
            "retriever 'elastic' does not exist",
        ),
        (
            ["--corpus", "--first-stage", "scanner"],
            "expected a retriever that ranks chunks",
        ),
    ],
)
def test_bad_arguments(
    evaluate: Run, data: Path, out: Path, arguments: list[str], message: str
) -> None:
    evaluate(data, *arguments).refuses(message)
    assert not out.exists()  # no unfinished file


def test_bad_lines(evaluate: Run, data: Path, out: Path) -> None:
    outside = line(
        "d4", "a", questions=[{"qid": "q", "question": "?", "evidence": [[0, 999]]}]
    )
    with data.open("a", encoding="utf-8") as file:
        file.write("{broken\n" + json.dumps(outside))
    evaluate(data).refuses("data.jsonl, line 4")
    told = evaluate(data, "--skip-bad")
    assert told.code == 0
    assert "line 4" in told.err
    assert "line 5, question q" in told.err
    assert "Lines left out: 2" in (out / "results.html").read_text(encoding="utf-8")


def test_no_questions(evaluate: Run, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "empty.jsonl", line("d", "a", questions=[]))
    missing = tmp_path / "no.jsonl"
    for data, message in (
        (path, "no answerable question with evidence"),
        (missing, f"{missing}: no such file; expected a file of questions, .jsonl"),
        (tmp_path, f"{tmp_path}: a folder; expected a file of questions"),
    ):
        evaluate(data).refuses(message)


# What identifies a run


KINDS_OF_RUN: dict[str, list[object]] = {
    "plain": [],
    "calibration": ["--calibration"],
    "corpus": ["--corpus"],
    "among": ["--among", 2],
}


def interrupted(out: Path) -> bytes:
    """Keep only the first two records of a run."""
    records = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert len(records) > 2
    kept = b"".join(records[:2])
    (out / "records.jsonl").write_bytes(kept)
    return kept


@pytest.fixture
def folder(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint"))


@pytest.fixture
def ask(evaluate: Run, many: Path, folder: Path) -> Callable[..., Output]:
    """Makes a run of some kind, by default with the checkpoint in ``folder``."""

    def ask(kind: str, retrievers: str = f"scanner:{folder}") -> Output:
        return evaluate(many, *KINDS_OF_RUN[kind], "--retrievers", retrievers)

    return ask


@pytest.mark.parametrize("kind", KINDS_OF_RUN)
def test_a_run_goes_on_as_its_kind(
    kind: str, ask: Callable[..., Output], out: Path, folder: Path
) -> None:
    name = f"scanner:{folder}" if kind == "calibration" else "bm25"
    assert ask(kind, name).code == 0
    rows = [row for row in rows_of(out) if row["metric"] not in TIMED]
    number, before = len(read_lines(out / "records.jsonl")), interrupted(out)
    assert ask(kind, name).code == 0
    assert [row for row in rows_of(out) if row["metric"] not in TIMED] == rows
    assert (out / "records.jsonl").read_bytes().startswith(before)
    assert len(read_lines(out / "records.jsonl")) == number
    assert (
        ask(kind, f"{name},hybrid:bm25+bm25" if kind != "calibration" else name).code
        == 0
    )  # another one
    refused = ask("corpus" if kind == "plain" else "plain", name)
    assert refused.code == 2
    assert "give the same again, or another --out" in refused.err


def test_a_replaced_checkpoint_is_refused(
    ask: Callable[..., Output], folder: Path, out: Path
) -> None:
    assert ask("plain").code == 0
    before = interrupted(out)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        path = folder / name
        content = path.read_bytes()
        # white space after JSON, and another last bit of a weight: both load without an
        # error
        path.write_bytes(
            content + b" "
            if path.suffix == ".json"
            else content[:-1] + bytes([content[-1] ^ 1])
        )
        assert ask("plain", "bm25").code == 0, "which has no model"
        before = (out / "records.jsonl").read_bytes()
        refused = ask("plain")
        assert refused.code == 2
        assert f"retrievers: scanner:{folder}: checkpoint: " in refused.err
        assert (out / "records.jsonl").read_bytes() == before
        path.write_bytes(content)
    assert ask("plain").code == 0
    assert (out / "records.jsonl").read_bytes().startswith(before)
