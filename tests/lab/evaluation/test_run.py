"""What studies ask of each setting, the records of their questions, and the result."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.corpora import Pool
from spscanner_lab.evaluation.records import Record, RecordFile
from spscanner_lab.evaluation.run import (
    PeakMemory,
    Plan,
    document_metrics,
    measure,
    recall_by_position,
    within,
)
from spscanner_lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines import BM25
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.coverage import Spans
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
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


def run(folder: Path, study: Study, *scorers: object) -> list[Record]:
    """The records of a study in which these are the scorers of the settings and first stages."""
    file = RecordFile(folder, {})
    by_setting = dict(zip([*study.settings, *study.stages], scorers, strict=True))
    for ask in study.asks:
        ask.run(by_setting, {}, words, file)  # type: ignore[arg-type]
    return list(file.records.values())


def asked(study: Study) -> list[tuple[str, dict[str, set[str]]]]:
    """The questions that each setting is asked, by source."""
    found = []
    for ask in study.asks:
        questions: dict[str, set[str]] = {}
        for corpus in ask.corpora():
            questions.setdefault(corpus.source, set()).update(
                question.qid for _, question in corpus.asked
            )
        found.append((ask.setting.label, questions))
    return found


# What is asked


def test_a_calibrated_study() -> None:
    study = study_of(SETTINGS, WALKS, Plan(), calibration=True)
    answerable = {"walks": {"narrow", "wide"}}
    both = {"roads": {"absent", "gone"}, "walks": {"narrow", "wide", "absent"}}
    assert asked(study) == [
        ("scanner", both),
        ("bm25", answerable),
        ("bm25, chunks", answerable),
    ]
    assert [ask.calibrate for ask in study.asks] == [True, False, False]
    one = study_of(SETTINGS, WALKS, Plan(), 1, calibration=True)
    assert {source: len(own) for source, own in asked(one)[0][1].items()} == {
        "roads": 1,
        "walks": 2,
    }


def test_a_first_stage_is_for_retrievers_without_an_index() -> None:
    stages = ["bm25", "none", "dense:x"]
    study = corpus_study_of(
        OF_CORPORA, PAGES, Plan(first_stages=stages, read_documents=2)
    )
    assert [ask.setting.label for ask in study.asks] == [
        *("scanner, 2 documents by bm25", "scanner", "scanner, 2 documents by dense:x"),
        *("bm25", "dense, chunks", "hybrid:bm25+dense"),
    ]
    assert study.stages == [Setting("dense:x", "chunk")]
    assert [ask.stage for ask in study.asks] == [
        "bm25",
        None,
        Setting("dense:x", "chunk"),
        None,
        None,
        None,
    ]
    assert [ask.scorer for ask in study.asks] == [OF_CORPORA[0]] * 3 + OF_CORPORA[1:]
    (ask,) = corpus_study_of(OF_CORPORA[:1], PAGES, Plan(among=2)).asks
    assert (ask.setting.label, ask.plan.among) == ("scanner", 2)


def test_arguments_differ_with_the_questions() -> None:
    plain = study_of(SETTINGS, WALKS, Plan()).arguments
    fewer = study_of(SETTINGS[:1], WALKS[:1], Plan())
    assert fewer.arguments == plain, "unanswerable questions make no difference"
    assert study_of(SETTINGS, WALKS, Plan(), 1).arguments != plain
    assert study_of(SETTINGS, WALKS, Plan(cutoffs=(1, 2))).arguments == {
        **plain,
        "cutoffs": [1, 2],
    }
    calibrated = study_of(SETTINGS, WALKS, Plan(), calibration=True).arguments
    assert calibrated["questions"] == plain["questions"]
    assert (
        study_of(SETTINGS, WALKS[:1], Plan(), calibration=True).arguments != calibrated
    )
    for changes in (
        {"text": WALK + " The end."},
        {"text": WALK + "\ud800"},
        {"title": "Walks"},
    ):
        changed = study_of(SETTINGS, [replace(WALKS[0], **changes), WALKS[1]], Plan())
        assert changed.arguments["questions"] != plain["questions"]


def test_arguments_differ_with_the_corpus() -> None:
    plain = corpus_study_of(OF_CORPORA, PAGES, Plan()).arguments
    same = corpus_study_of(OF_CORPORA[:1], PAGES[::-1], Plan(first_stages=["bm25"]))
    assert same.arguments == plain
    for plan in (
        Plan(among=2),
        Plan(characters=40),
        Plan(aggregation="sum"),
        Plan(cutoffs=(1, 2)),
    ):
        assert corpus_study_of(OF_CORPORA, PAGES, plan).arguments != plain
    more = [*PAGES, replace(page("otter"), doc_id="more", questions=())]
    for other in (
        corpus_study_of(OF_CORPORA, PAGES, Plan(), 1),
        corpus_study_of(OF_CORPORA, more, Plan()),
    ):
        assert other.arguments != plain


# Metrics of one question


def pool_of(*spans: tuple[int, int]) -> Pool:
    """Units with one token per character."""
    own = Spans.of([Unit(start, end, "") for start, end in spans])
    return Pool(own, own.ends - own.starts)


def test_measure_by_hand() -> None:
    sentences = Spans.of(SentenceSegmenter().segment(TEXT))
    evidence = Spans(sentences.starts[[0, 2]], sentences.ends[[0, 2]])
    metrics = measure(
        Pool(sentences, np.full(5, 3)), np.array([2.0, 3.0, 1.0, 0.0, -1.0]), evidence
    )
    expected = {
        "recall@1": 0,
        "recall@5": 1,
        "precision@5": 0.4,
        "success@1": 0,
        "mrr": 0.5,
    }
    assert metrics | expected == metrics
    ideal = 1 + 1 / np.log2(3)
    assert metrics["ndcg@5"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(4)) / ideal)


def test_the_best_recall_is_that_of_the_units_that_hold_most_evidence() -> None:
    units = pool_of((0, 10), (10, 20), (20, 30), (30, 40))
    evidence = pool_of(
        (0, 4), (20, 24), (24, 28), (35, 39)
    ).spans  # 1, 0, 2 and 1 in the units
    for scores, recalls in (
        ([4.0, 3, 2, 1], [0.25, 0.25, 0.75]),
        ([1.0, 2, 3, 4], [0.25, 0.75, 0.75]),
    ):
        metrics = measure(units, np.array(scores), evidence, [1, 2, 3])
        assert [metrics[f"best_recall@{k}"] for k in (1, 2, 3)] == [0.5, 0.75, 1]
        assert [metrics[f"recall@{k}"] for k in (1, 2, 3)] == recalls


def test_evidence_across_chunks() -> None:
    # of 20 characters, the first chunk holds 12 and the second 8
    metrics = measure(
        pool_of((0, 12), (12, 30), (30, 40)),
        np.array([1.0, 3.0, 2.0]),
        pool_of((0, 20)).spans,
    )
    assert (
        metrics["recall@1"],
        metrics["recall@5"],
        metrics["recall_at_tokens@250"],
    ) == (0, 1, 1)
    assert metrics["mrr"] == pytest.approx(1 / 3)
    # no chunk holds half of it
    metrics = measure(
        pool_of((0, 4), (4, 8), (8, 12)),
        np.array([3.0, 2.0, 1.0]),
        pool_of((0, 12)).spans,
    )
    assert (metrics["recall@1"], metrics["recall@5"]) == (0, 1)  # two chunks together
    assert metrics["mrr"] == metrics["map"] == metrics["ndcg@5"] == 0


def test_a_sentence_counts_where_its_middle_is() -> None:
    def shares(ranks: list[int], *spans: tuple[int, int]) -> dict[str, float]:
        return recall_by_position(pool_of(*spans).spans, np.array(ranks), 5, 100)

    first, last = "recall_by_position@5@1", "recall_by_position@5@10"
    assert shares([5, 6, 1], (0, 4), (5, 9), (90, 100)) == {first: 0.5, last: 1}
    assert shares([1] * 3, (9, 10), (9, 11), (99, 100)) == {
        first: 1,
        "recall_by_position@5@2": 1,
        last: 1,
    }


def test_evidence_without_the_white_space_between_units() -> None:
    units = pool_of((0, 10), (12, 20), (25, 30)).spans
    found = within(units, [(5, 15), (8, 13), (19, 27), (30, 33)])
    assert list(zip(*found, strict=True)) == [(5, 10), (12, 15), (19, 20), (25, 27)]
    assert (
        len(within(units, []).starts)
        == len(within(pool_of().spans, [(0, 4)]).starts)
        == 0
    )


def test_document_metrics_by_hand() -> None:
    scores = [np.array([1.0, -2.0]), np.zeros(0), np.array([3.0])]
    expected = {
        "document_mrr": 0.5,
        "document_recall@1": 0,
        "document_recall@5": 1,
        "document_recall@10": 1,
    }
    assert document_metrics(scores, [True, False, False]) == expected
    assert (
        document_metrics(scores, [False, True, False])["document_mrr"] == 1 / 3
    )  # empty, so it ranks last
    for none in (document_metrics(scores, [False] * 3), document_metrics([], [])):
        assert none == dict.fromkeys(expected, 0.0)


# Records of documents


def test_records_of_documents(tmp_path: Path) -> None:
    study = study_of([MINE], [document("one"), document("two", "water")], Plan())
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
    assert [Record.read(line) for line in lines] == records


def test_a_killed_run_resumes_and_progress_counts_what_is_known(tmp_path: Path) -> None:
    study = study_of([MINE], [document("one"), document("two")], Plan())
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
        (ask,) = study.asks
        ask.run({MINE: scorer}, titles, words, file, lambda *step: steps.append(step))
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
    study = study_of([Setting("scanner")], [absent], Plan(), calibration=calibration)
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


# Records of corpora


def of_pages(folder: Path, *scorers: object, **options: object) -> dict[str, Record]:
    """The records of a corpus study of the pages, by the document that each question is about."""
    study = corpus_study_of([MINE], PAGES, Plan(**options))  # type: ignore[arg-type]
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
        ("corpus", corpus_study_of([MINE], [blank, page("otter")], Plan())),
        ("documents", study_of([MINE], [blank, page("otter")], Plan())),
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


def test_peak_is_that_of_what_was_done() -> None:
    before = PeakMemory().megabytes()
    if before is None:
        pytest.skip("the kernel does not tell here")
    large = PeakMemory()
    np.ones(
        100_000_000
    ).sum()  # 800 MB, freed at once; the process may free other memory meanwhile
    peak = large.megabytes()
    after = PeakMemory().megabytes()
    assert peak is not None
    assert after is not None
    assert 600 < peak - before < 900
    assert after < peak - 600
