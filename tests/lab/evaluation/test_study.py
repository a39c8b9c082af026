"""What kinds of runs ask, of whom, and what they refuse."""

import re
from dataclasses import replace

import pytest

from spscanner_rag.lab.evaluation.rotation import LAYOUTS
from spscanner_rag.lab.evaluation.run import as_it_is
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.study import Study, study_of
from spscanner_rag.lab.evidence.questions import Document, Question

TEXT = " ".join(f"On day {number} of the walk an otter crossed the road slowly." for number in range(20))
NARROW, WIDE = Question("narrow", "Where?", ((0, 5),)), Question("wide", "When?", ((0, len(TEXT)),))
ABSENT = Question("absent", "Who?", (), answerable=False)
DOCUMENTS = [
    Document("d1", "walks", "", TEXT, (NARROW, WIDE, ABSENT)),
    Document("d2", "roads", "", TEXT, (ABSENT, replace(ABSENT, qid="gone"))),
]
SETTINGS = [Setting("scanner", "sentence"), Setting("bm25", "sentence"), Setting("bm25", "chunk")]


def asked(study: Study) -> list[tuple[str, dict[str, set[str]]]]:
    return [
        (ask.setting.label, {source: {q.qid for _, q in pairs} for source, pairs in ask.questions.items()})
        for ask in study.asks
    ]


def test_plain() -> None:
    study = study_of(SETTINGS, DOCUMENTS)
    answerable = {"walks": {"narrow", "wide"}}
    assert asked(study) == [("scanner", answerable), ("bm25", answerable), ("bm25, chunks", answerable)]
    assert [ask.scorer for ask in study.asks] == SETTINGS
    assert {(ask.layout, ask.calibrate) for ask in study.asks} == {(as_it_is, False)}
    assert list(study.arguments) == ["questions"]
    assert re.fullmatch("[0-9a-f]{64}", str(study.arguments["questions"]))


def test_arguments_tell_the_questions_apart() -> None:
    plain = study_of(SETTINGS, DOCUMENTS).arguments
    assert study_of(SETTINGS[:1], DOCUMENTS[:1]).arguments == plain  # unanswerable ones make no difference
    assert study_of(SETTINGS, DOCUMENTS, 1).arguments != plain
    calibrated = study_of(SETTINGS, DOCUMENTS, calibration=True).arguments
    assert calibrated["questions"] == plain["questions"]
    assert study_of(SETTINGS, DOCUMENTS[:1], calibration=True).arguments != calibrated
    assert study_of(SETTINGS, DOCUMENTS, rotate=True).arguments == plain | {"rotate": True}


def test_calibrated() -> None:
    study = study_of(SETTINGS, DOCUMENTS, calibration=True)
    answerable = {"walks": {"narrow", "wide"}}
    both = {"roads": {"absent", "gone"}, "walks": {"narrow", "wide", "absent"}}
    assert asked(study) == [("scanner", both), ("bm25", answerable), ("bm25, chunks", answerable)]
    assert [ask.calibrate for ask in study.asks] == [True, False, False]
    one = study_of(SETTINGS, DOCUMENTS, 1, calibration=True)
    assert {source: len(pairs) for source, pairs in one.asks[0].questions.items()} == {"roads": 1, "walks": 2}


def test_rotated() -> None:
    study = study_of(SETTINGS[1:], DOCUMENTS, rotate=True)
    kept = {"walks": {"narrow"}}
    labels = ["bm25, first tenth", "bm25, last tenth"]
    assert asked(study) == [(f"{label}{unit}", kept) for unit in ("", ", chunks") for label in labels]
    assert [ask.layout for ask in study.asks] == [*LAYOUTS.values()] * 2
    assert [ask.scorer for ask in study.asks[::2]] == SETTINGS[1:]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="got --calibration and --rotate; expected one of them"):
        study_of(SETTINGS, DOCUMENTS, calibration=True, rotate=True)
    with pytest.raises(ValueError, match="got bm25, bm25, chunks, whose scores are not probabilities"):
        study_of(SETTINGS[1:], DOCUMENTS, calibration=True)
    with pytest.raises(ValueError, match="no answerable question with evidence"):
        study_of(SETTINGS, DOCUMENTS[1:], calibration=True)
    with pytest.raises(ValueError, match="none of 1 questions"):
        study_of(SETTINGS, [replace(DOCUMENTS[0], questions=(WIDE,))], rotate=True)


KINDS: list[dict[str, bool]] = [{}, {"calibration": True}, {"rotate": True}]


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_tell_texts_and_titles_apart(kind: dict[str, bool]) -> None:
    before = study_of(SETTINGS, DOCUMENTS, **kind).arguments["questions"]
    for changed in (
        replace(DOCUMENTS[0], text=TEXT + " The end."),
        replace(DOCUMENTS[0], text=TEXT + "\ud800"),
        replace(DOCUMENTS[0], title="Walks"),
    ):
        assert study_of(SETTINGS, [changed, DOCUMENTS[1]], **kind).arguments["questions"] != before


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_twice_is_refused(kind: dict[str, bool]) -> None:
    for documents in (
        [DOCUMENTS[0], replace(DOCUMENTS[0], text=TEXT + " The end.")],
        [replace(DOCUMENTS[0], questions=(NARROW, replace(WIDE, qid="narrow")))],
    ):
        with pytest.raises(
            ValueError, match="question 'narrow' of document 'd1' of source 'walks' more than"
        ):
            study_of(SETTINGS, documents, **kind)
    study_of(SETTINGS, [DOCUMENTS[0], replace(DOCUMENTS[0], source="other")], **kind)
    more = replace(DOCUMENTS[0], questions=(replace(NARROW, qid="more"),))
    study_of(SETTINGS, [DOCUMENTS[0], more], **kind)
