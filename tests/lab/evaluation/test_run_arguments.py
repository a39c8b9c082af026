"""What must be the same when a run resumes."""

from dataclasses import replace

from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.study import corpus_study_of, study_of
from tests.lab.evaluation.tiny_study import page
from tests.lab.evaluation.walks import (
    OF_CORPORA,
    PAGES,
    SETTINGS,
    WALK,
    WALKS,
)


def test_arguments_differ_with_the_questions() -> None:
    plain = study_of(SETTINGS, WALKS, EvaluationPlan()).arguments
    fewer = study_of(SETTINGS[:1], WALKS[:1], EvaluationPlan())
    assert fewer.arguments == plain, "unanswerable questions make no difference"
    assert study_of(SETTINGS, WALKS, EvaluationPlan(), 1).arguments != plain
    assert study_of(SETTINGS, WALKS, EvaluationPlan(cutoffs=(1, 2))).arguments == {
        **plain,
        "cutoffs": [1, 2],
    }
    calibrated = study_of(SETTINGS, WALKS, EvaluationPlan(), calibration=True).arguments
    assert calibrated["questions"] == plain["questions"]
    assert (
        study_of(SETTINGS, WALKS[:1], EvaluationPlan(), calibration=True).arguments
        != calibrated
    )
    for changes in (
        {"text": WALK + " The end."},
        {"text": WALK + "\ud800"},
        {"title": "Walks"},
    ):
        changed = study_of(
            SETTINGS, [replace(WALKS[0], **changes), WALKS[1]], EvaluationPlan()
        )
        assert changed.arguments["questions"] != plain["questions"]


def test_arguments_differ_with_the_corpus() -> None:
    plain = corpus_study_of(OF_CORPORA, PAGES, EvaluationPlan()).arguments
    same = corpus_study_of(
        OF_CORPORA[:1], PAGES[::-1], EvaluationPlan(first_stages=["bm25"])
    )
    assert same.arguments == plain
    for plan in (
        EvaluationPlan(among=2),
        EvaluationPlan(characters=40),
        EvaluationPlan(aggregation="sum"),
        EvaluationPlan(cutoffs=(1, 2)),
    ):
        assert corpus_study_of(OF_CORPORA, PAGES, plan).arguments != plain
    more = [*PAGES, replace(page("otter"), doc_id="more", questions=())]
    for other in (
        corpus_study_of(OF_CORPORA, PAGES, EvaluationPlan(), 1),
        corpus_study_of(OF_CORPORA, more, EvaluationPlan()),
    ):
        assert other.arguments != plain
