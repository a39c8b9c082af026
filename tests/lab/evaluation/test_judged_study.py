"""Judged corpora are measured as ir_measures measures them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evaluation.judged import read_beir, read_qrels
from spscanner_lab.evaluation.judged_study import judged_study_of
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.question_metrics import graded_metrics
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import RecordFile
from spscanner_lab.evaluation.trec_runs import write_runs
from spscanner_rag.baselines import BM25
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.document_scores import Aggregation
from tests.lab.evaluation.beir_folder import folder_of

ir_measures = pytest.importorskip("ir_measures")


CUTOFFS = (1, 2, 5, 10, 20)


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(range(12)),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
    st.integers(0, 12),
)
def test_metrics_agree_with_ir_measures(
    order: list[int], grades: list[int], kept: int
) -> None:
    if not any(grades):
        grades[0] = 1
    judged = {f"d{i}": grade for i, grade in enumerate(grades)}
    ranking = [f"d{i}" for i in order[:kept]]
    names = {
        "ndcg": "nDCG",
        "recall": "R",
        "precision": "P",
        "success": "Success",
        "mrr": "RR",
    }
    theirs = {
        f"{name}@{k}": getattr(ir_measures, own) @ k
        for name, own in names.items()
        for k in CUTOFFS
    }
    theirs |= {"map": ir_measures.AP, "mrr": ir_measures.RR}
    run = {"q": {document: -float(rank) for rank, document in enumerate(ranking)}}
    expected = ir_measures.calc_aggregate(theirs.values(), {"q": judged}, run)
    found = graded_metrics(ranking, judged, CUTOFFS)
    assert {name for name in found if not name.startswith("err")} == theirs.keys()
    for name, measure in theirs.items():
        assert found[name] == pytest.approx(
            expected[measure] if ranking else 0, abs=1e-6
        ), name


@pytest.mark.parametrize(
    ("first_stage", "aggregation"), [("none", "max"), ("bm25", "sum")]
)
def test_ir_measures_agrees_on_our_run_files(
    tmp_path: Path, first_stage: str, aggregation: Aggregation
) -> None:
    judged = read_beir(folder_of(tmp_path / "animals"))
    assert (len(judged.documents), len(judged.queries), judged.left_out) == (8, 7, 1)
    retriever = Setting("bm25") if first_stage == "none" else Setting("scanner")
    plan = EvaluationPlan(
        first_stages=[first_stage],
        read_documents=3,
        cutoffs=CUTOFFS,
        aggregation=aggregation,
    )
    study = judged_study_of([retriever], judged, plan)
    file = RecordFile(tmp_path / "out", study.arguments)
    (setting_run,) = study.setting_runs
    Questioner(setting_run, {retriever: BM25()}, len).ask_all({}, file)
    write_runs(file.records.values(), [setting_run.setting], tmp_path / "out")
    qrels = str(tmp_path / "animals" / "qrels" / "trec")
    Path(qrels).write_text(
        "".join(
            f"{q} 0 {d} {grade}\n"
            for q, own in judged.qrels.items()
            for d, grade in own.items()
        )
    )
    assert read_qrels(Path(qrels)) == judged.qrels
    (run,) = (tmp_path / "out").glob("*.trec")
    names = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "map": ir_measures.AP,
        "recall@2": ir_measures.R @ 2,
    }
    theirs = list(
        ir_measures.iter_calc(
            names.values(),
            ir_measures.read_trec_qrels(qrels),
            ir_measures.read_trec_run(str(run)),
        )
    )
    for name, measure in names.items():
        per_query = {
            value.query_id: value.value for value in theirs if value.measure == measure
        }
        for record in file.records.values():
            assert record.metrics[name] == pytest.approx(
                per_query[record.qid], abs=1e-6
            )
    result = study.result(list(file.records.values()))
    row = result.find(setting_run.setting, "ndcg", 10, "animals")
    assert row is not None
    assert row["value"] == pytest.approx(
        np.mean([record.metrics["ndcg@10"] for record in file.records.values()]),
        abs=1e-9,
    )
    read = {record.metrics["documents_read"] for record in file.records.values()}
    assert read == {8 if first_stage == "none" else 3}
    assert result.tables[0].head[-1] == "seconds"
    before, path = run.read_bytes(), tmp_path / "out" / "records.jsonl"
    path.write_bytes(
        b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    )  # of an interrupted run
    file = RecordFile(tmp_path / "out", study.arguments)
    Questioner(setting_run, {retriever: BM25()}, len).ask_all({}, file)
    write_runs(file.records.values(), [setting_run.setting], tmp_path / "out")
    assert len(file.records) == 7
    assert run.read_bytes() == before
