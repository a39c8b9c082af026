"""What must be the same when a run resumes."""

from dataclasses import replace

from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.study import corpus_study_of, study_of
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.settings import Setting
from tests.lab.evaluation.tiny_study import ANIMALS, page

WALK = " ".join(
    f"On day {number} of the walk an otter crossed the road slowly."
    for number in range(20)
)


NARROW, WIDE = (
    Question("narrow", "Where?", ((0, 5),)),
    Question("wide", "When?", ((0, len(WALK)),)),
)


ABSENT = Question("absent", "Who?", (), answerable=False)


WALKS = [
    Document("d1", "walks", "", WALK, (NARROW, WIDE, ABSENT)),
    Document("d2", "roads", "", WALK, (ABSENT, replace(ABSENT, qid="gone"))),
]


PAGES = [page(animal) for animal in ANIMALS]


SETTINGS = [Setting("scanner"), Setting("bm25"), Setting("bm25", "chunk")]


OF_CORPORA = [
    Setting("scanner"),
    Setting("bm25"),
    Setting("dense", "chunk"),
    Setting("hybrid:bm25+dense"),
]


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
