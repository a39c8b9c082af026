"""What studies ask of each setting."""

from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_rag.baselines.settings import Setting
from tests.lab.evaluation.walks import (
    OF_CORPORA,
    PAGES,
    SETTINGS,
    WALKS,
)


def asked(study: Study) -> list[tuple[str, dict[str, set[str]]]]:
    """The questions that each setting is asked, by source."""
    found = []
    for setting_run in study.setting_runs:
        questions: dict[str, set[str]] = {}
        for corpus in setting_run.corpora():
            questions.setdefault(corpus.source, set()).update(
                question.qid for _, question in corpus.questions
            )
        found.append((setting_run.setting.label, questions))
    return found


def test_a_calibrated_study() -> None:
    study = study_of(SETTINGS, WALKS, EvaluationPlan(), calibration=True)
    answerable = {"walks": {"narrow", "wide"}}
    both = {"roads": {"absent", "gone"}, "walks": {"narrow", "wide", "absent"}}
    assert asked(study) == [
        ("scanner", both),
        ("bm25", answerable),
        ("bm25, chunks", answerable),
    ]
    assert [setting_run.calibrate for setting_run in study.setting_runs] == [
        True,
        False,
        False,
    ]
    one = study_of(SETTINGS, WALKS, EvaluationPlan(), 1, calibration=True)
    assert {source: len(own) for source, own in asked(one)[0][1].items()} == {
        "roads": 1,
        "walks": 2,
    }


def test_a_first_stage_is_for_retrievers_without_an_index() -> None:
    stages = ["bm25", "none", "dense:x"]
    study = corpus_study_of(
        OF_CORPORA, PAGES, EvaluationPlan(first_stages=stages, read_documents=2)
    )
    assert [setting_run.setting.label for setting_run in study.setting_runs] == [
        *("scanner, 2 documents by bm25", "scanner", "scanner, 2 documents by dense:x"),
        *("bm25", "dense, chunks", "hybrid:bm25+dense"),
    ]
    assert study.stages == [Setting("dense:x", "chunk")]
    assert [setting_run.stage for setting_run in study.setting_runs] == [
        "bm25",
        None,
        Setting("dense:x", "chunk"),
        None,
        None,
        None,
    ]
    assert [setting_run.scorer for setting_run in study.setting_runs] == [
        OF_CORPORA[0]
    ] * 3 + OF_CORPORA[1:]
    (setting_run,) = corpus_study_of(
        OF_CORPORA[:1], PAGES, EvaluationPlan(among=2)
    ).setting_runs
    assert (setting_run.setting.label, setting_run.plan.among) == ("scanner", 2)
