"""The records of questions on documents and on corpora."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import Record, RecordFile
from spscanner_lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines import BM25
from spscanner_rag.baselines.settings import Setting
from tests.fakes import words
from tests.lab.evaluation.tiny_study import (
    ANIMALS,
    TEXT,
    Counting,
    Given,
    document,
    page,
)

MINE = Setting("mine")


ABSENT = Question("absent", "Who?", (), answerable=False)


PAGES = [page(animal) for animal in ANIMALS]


def run(folder: Path, study: Study, *scorers: object) -> list[Record]:
    """The records of a study with these scorers of its settings and first stages."""
    file = RecordFile(folder, {})
    by_setting = dict(zip([*study.settings, *study.stages], scorers, strict=True))
    for setting_run in study.setting_runs:
        questioner = Questioner(setting_run, by_setting, words)  # type: ignore[arg-type]
        questioner.ask_all({}, file)
    return list(file.records.values())


def test_records_of_documents(tmp_path: Path) -> None:
    study = study_of(
        [MINE], [document("one"), document("two", "water")], EvaluationPlan()
    )
    records = run(tmp_path, study, BM25())
    assert {(r.source, r.doc_id, r.qid) for r in records} == {
        (source, doc, qid)
        for source, doc in (("wild", "one"), ("water", "two"))
        for qid in ("q0", "q1")
    }
    for record in records:
        assert (record.split, record.characters, record.metrics["recall@1"]) == (
            "dev",
            len(TEXT),
            1,
        )
        assert record.metrics["tokens@50"] == words(TEXT)
        assert record.metrics["recall_by_length@0"] == record.metrics["recall@10"]
        places = [
            name for name in record.metrics if name.startswith("recall_by_position@10@")
        ]
        assert places == [f"recall_by_position@10@{1 if record.qid == 'q0' else 5}"]
        assert not record.metrics.keys() & {"documents_read", "document_mrr"}
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [Record.from_line(line) for line in lines] == records


def test_a_killed_run_resumes_and_progress_counts_what_is_known(tmp_path: Path) -> None:
    study = study_of([MINE], [document("one"), document("two")], EvaluationPlan())
    whole = run(tmp_path, study, Given(otter=2, Rain=1))
    path = tmp_path / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:-20])  # the last line is only half written
    scorer, steps, titles = (
        Given(otter=2, Rain=1),
        list[tuple[int, int]](),
        dict[str, str](),
    )
    for _ in range(2):
        file = RecordFile(tmp_path, {})
        (setting_run,) = study.setting_runs
        questioner = Questioner(setting_run, {MINE: scorer}, words)
        questioner.ask_all(titles, file, lambda *step: steps.append(step))
    assert len(scorer.queries) == 3
    assert steps == [(2, 4), (4, 4)] * 2
    assert titles == {TEXT: "Title of two"}
    assert {r.key: r.metrics["mrr"] for r in file.records.values()} == {
        r.key: r.metrics["mrr"] for r in whole
    }
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.parametrize("calibration", [True, False])
def test_calibration_is_kept_compactly(tmp_path: Path, calibration: bool) -> None:
    absent = replace(document(), questions=(*document().questions, ABSENT))
    study = study_of(
        [Setting("scanner")], [absent], EvaluationPlan(), calibration=calibration
    )
    scorer = Given(otter=2, heron=0, Rain=-2, Otters=-4, end=-9)
    for word in "The swims. A flies. fell all day. and herons rest. came.".split():
        scorer.scores.setdefault(word.strip("."), -9)
    run(tmp_path, study, scorer)
    lines = [
        json.loads(line)
        for line in (tmp_path / "records.jsonl").read_text().splitlines()
    ]
    lines = {line["qid"]: line for line in lines}  # type: ignore[assignment]
    present = lines["q0"]  # type: ignore[call-overload]
    assert (
        ("highest" in present)
        == ("bins" in present)
        == ("absent" in lines)
        == calibration
    )
    if calibration:
        missing = lines["absent"]  # type: ignore[call-overload]
        assert (missing["answerable"], "bins" in missing) == (False, False)
        assert not missing["metrics"].keys() - {"seconds", "peak_megabytes"}
        assert (
            missing["highest"]
            == present["highest"]
            == pytest.approx(1 / (1 + np.exp(-2)))
        )
        assert [cell[:3] for cell in present["bins"]] == [
            [0, 2, 0],
            [1, 1, 0],
            [7, 1, 0],
            [13, 1, 1],
        ]


def of_pages(folder: Path, *scorers: object, **options: object) -> dict[str, Record]:
    """The records of a corpus study of the pages, by the right document."""
    study = corpus_study_of([MINE], PAGES, EvaluationPlan(**options))  # type: ignore[arg-type]
    return {record.doc_id: record for record in run(folder, study, *scorers)}


def test_evidence_and_document_among_all(tmp_path: Path) -> None:
    scorer = Given(rained=1, otter=1, heron=2, swims=3)
    records = of_pages(tmp_path, scorer)
    assert sorted(records) == sorted(ANIMALS)
    record = records[
        "vole"
    ]  # the best sentences are the four that say "swims", then the one on the heron
    assert (
        record.metrics["document_mrr"] == 1 / 4
    )  # all documents tie in their best score; the vole comes last
    expected = {
        "document_recall@1": 0,
        "document_recall@5": 1,
        "recall@5": 0,
        "recall@10": 1,
        "mrr": 1 / 8,
    }
    assert record.metrics | expected == record.metrics
    assert records["heron"].metrics["mrr"] == 1 / 5
    assert (record.source, record.split, record.qid) == ("wild", "dev", "vole-q")
    costs = {"documents_read": 4, "tokens_read": 4 * 14, "tokens@50": 4 * 14}
    assert record.metrics | costs == record.metrics
    assert record.characters == len(page("vole").text)
    assert len(scorer.texts) == 16
    assert not any("by_position" in name for name in record.metrics)


def test_a_document_that_is_not_read_is_not_found(tmp_path: Path) -> None:
    records = of_pages(
        tmp_path, Given(rained=1), Given(otter=1), first_stages=["x"], read_documents=2
    )
    found = {name for name, record in records.items() if record.metrics["document_mrr"]}
    assert found == {
        "otter",
        "badger",
    }  # the first in the corpus of those with the same score
    assert (
        records["vole"].metrics["recall@50"]
        == records["vole"].metrics["document_recall@10"]
        == 0
    )
    assert records["vole"].metrics["documents_read"] == 2


def test_evidence_of_white_space_has_no_record(tmp_path: Path) -> None:
    question = Question("q", "What fell?", ((15, 17),))
    blank = Document("x", "wild", "", "No otter swims.   Rain fell.", (question,))
    for folder, study in (
        ("corpus", corpus_study_of([MINE], [blank, page("otter")], EvaluationPlan())),
        ("documents", study_of([MINE], [blank, page("otter")], EvaluationPlan())),
    ):
        assert [record.doc_id for record in run(tmp_path / folder, study, Given())] == [
            "otter"
        ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 4),
        (
            {"first_stages": ["bm25"], "read_documents": 1},
            4,
        ),  # the counts cover all documents of the collection
        ({"among": 3}, 3),
        ({"among": 3, "first_stages": ["bm25"], "read_documents": 1}, 3),
    ],
)
def test_the_collection_of_a_question(
    tmp_path: Path, options: dict[str, object], expected: int
) -> None:
    scorer = Counting()
    of_pages(tmp_path, scorer, **options)
    assert {units for _, units in scorer.asked} == {4 * expected}
