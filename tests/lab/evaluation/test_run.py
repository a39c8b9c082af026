import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.run import Cut, LaidOut, measure, run_setting
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import sample_questions
from spscanner_rag.results.coverage import Spans, evidence_sentences
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest. The end came."
BM25_SENTENCE = Setting("bm25", "sentence")


def document(doc_id: str = "d", source: str = "wild", *evidence: tuple[int, int]) -> Document:
    questions = tuple(
        Question(f"q{number}", query, (span,))
        for number, (query, span) in enumerate(
            zip(["Which otter swims?", "What fell?"], evidence or [(4, 9), (32, 36)], strict=False)
        )
    )
    return Document(doc_id, source, "", TEXT, questions, split="dev")


class Given:
    """Scores that are told beforehand, and a count of how often they were asked for."""

    def __init__(self, *scores: float) -> None:
        self.scores = np.array(scores, np.float32)
        self.asked: list[str] = []

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        self.asked.append(query)
        return self.scores[: len(units)]


def words(text: str) -> int:
    return len(text.split())


def test_measure_by_hand() -> None:
    sentences = SentenceSegmenter().segment(TEXT)
    cut = Cut(document(), sentences, Spans.of(sentences), words)
    evidence = evidence_sentences(cut.sentences, [(4, 9), (32, 36)])  # the first and the third sentence
    metrics = measure(cut, np.array([2.0, 3.0, 1.0, 0.0, -1.0]), evidence)
    assert metrics["recall@1"] == 0
    assert metrics["recall@5"] == 1
    assert metrics["precision@5"] == 0.4
    assert metrics["success@1"] == 0
    assert metrics["mrr"] == 0.5
    ideal = 1 + 1 / np.log2(3)
    assert metrics["ndcg@5"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(4)) / ideal)


def test_the_best_recall_is_that_of_the_units_that_hold_most_evidence() -> None:
    units = [Unit(start, start + 10, "a" * 10) for start in range(0, 40, 10)]
    text = "a" * 40
    evidence = Spans.of(
        [Unit(start, start + 4, text[:4]) for start in (0, 20, 24, 35)]
    )  # 1, 0, 2 and 1 in each
    cut = Cut(Document("d", "s", "", text, ()), units, evidence, len)
    found = [
        measure(cut, np.array(scores), evidence, [1, 2, 3]) for scores in ([4.0, 3, 2, 1], [1.0, 2, 3, 4])
    ]
    for metrics in found:
        assert [metrics[f"best_recall@{k}"] for k in (1, 2, 3)] == [0.5, 0.75, 1]
    assert [found[0][f"recall@{k}"] for k in (1, 2, 3)] == [0.25, 0.25, 0.75]


def test_measure_of_chunks() -> None:
    # evidence of 20 characters, of which the first chunk holds 12 and the second 8
    units = [Unit(0, 12, "a" * 12), Unit(12, 30, "a" * 18), Unit(30, 40, "a" * 10)]
    text = "a" * 40
    cut = Cut(Document("d", "s", "", text, ()), units, Spans.of([Unit(0, 20, text[:20])]), len)
    scores = np.array([1.0, 3.0, 2.0])
    metrics = measure(cut, scores, cut.sentences)
    assert metrics["recall@1"] == 0
    assert metrics["recall@5"] == 1
    assert metrics["mrr"] == pytest.approx(1 / 3)
    assert metrics["recall_at_tokens@250"] == 1


def test_evidence_that_no_chunk_holds_half_of() -> None:
    units = [Unit(0, 4, "aaaa"), Unit(4, 8, "aaaa"), Unit(8, 12, "aaaa")]
    cut = Cut(Document("d", "s", "", "a" * 12, ()), units, Spans.of([Unit(0, 12, "a" * 12)]), len)
    metrics = measure(cut, np.array([3.0, 2.0, 1.0]), cut.sentences)
    assert metrics["recall@1"] == 0
    assert metrics["recall@5"] == 1  # two chunks together
    assert "mrr" not in metrics


def run(folder: Path, scorer: object, documents: Sequence[Document]) -> list[Record]:
    file = RecordFile(folder, {"seed": 0})
    run_setting(BM25_SENTENCE, scorer, sample_questions(documents), words, file)  # type: ignore[arg-type]
    return list(file.records.values())


def test_records(tmp_path: Path) -> None:
    documents = [document("one"), document("two", "water")]
    records = run(tmp_path, BM25(), documents)
    assert len(records) == 4
    assert {(r.source, r.doc_id, r.qid) for r in records} == {
        (source, doc, qid) for source, doc in (("wild", "one"), ("water", "two")) for qid in ("q0", "q1")
    }
    for record in records:
        assert (record.split, record.characters) == ("dev", len(TEXT))
        assert record.metrics["recall@1"] == 1
        assert record.tokens["50"] == words(TEXT)
        places = [place for place, recall in enumerate(record.positions["10"]) if recall is not None]
        assert places == [0 if record.qid == "q0" else 4]
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [Record.read(line) for line in lines] == records


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    documents = [document("one"), document("two")]
    whole = run(tmp_path / "whole", Given(5, 4, 3, 2, 1), documents)
    run(tmp_path / "killed", Given(5, 4, 3, 2, 1), documents[:1])
    path = tmp_path / "killed" / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-20])  # the last line is half written
    scorer = Given(5, 4, 3, 2, 1)
    again = run(tmp_path / "killed", scorer, documents)
    assert len(scorer.asked) == 3
    strip = [{**json.loads(json.dumps(r.metrics)), "key": r.key} for r in sorted(again, key=lambda r: r.key)]
    assert strip == [{**r.metrics, "key": r.key} for r in sorted(whole, key=lambda r: r.key)]
    assert len(path.read_text().splitlines()) == 4
    idle = Given(1)
    assert len(run(tmp_path / "killed", idle, documents)) == 4
    assert idle.asked == []


def test_progress_counts_what_is_known_already(tmp_path: Path) -> None:
    questions = sample_questions([document("one"), document("two")])
    file = RecordFile(tmp_path, {})
    steps: list[tuple[int, int]] = []
    for _ in range(2):
        run_setting(BM25_SENTENCE, BM25(), questions, words, file, lambda *step: steps.append(step))
    assert steps == [(2, 4), (4, 4)] * 2


def test_layout_is_what_the_retriever_reads(tmp_path: Path) -> None:
    def shouted(
        given: Document, questions: Sequence[Question], sentences: Sequence[Unit]
    ) -> Iterator[LaidOut]:
        for question in questions:
            yield LaidOut(replace(given, text=given.text.upper()), sentences[::-1], [question])

    class Reader(Given):
        def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
            read.append((text, units[0].start))
            return super().score_units(query, text, units)

    for setting, first in ((BM25_SENTENCE, 75), (Setting("bm25", "chunk"), 0)):
        read: list[tuple[str, int]] = []
        file = RecordFile(tmp_path / setting.unit, {})
        questions = sample_questions([document()])
        run_setting(setting, Reader(5, 4, 3, 2, 1), questions, words, file, layout=shouted)
        assert read == [(TEXT.upper(), first)] * 2
        assert len(file.records) == 2
        if setting.unit == "sentence":
            assert (
                file.records[*setting.key, "wild", "d", "q0"].metrics["mrr"] == 1 / 5
            )  # the last of those given


def test_calibration_is_kept_compactly(tmp_path: Path) -> None:
    absent = Question("absent", "Who paid?", (), answerable=False)
    given = document()
    asked = {"wild": [(given, question) for question in (*given.questions, absent)]}
    for calibrate in (True, False):
        file = RecordFile(tmp_path / str(calibrate), {})
        scorer = Given(2, 0, -2, -4, -9)
        run_setting(BM25_SENTENCE, scorer, asked, words, file, calibrate=calibrate)
        lines = [json.loads(line) for line in file.path.read_text().splitlines()]
        present, _, missing = lines
        assert missing["answerable"] is False
        assert missing["metrics"] == {}
        assert "gigaflops" not in missing
        assert ("highest" in missing) == ("highest" in present) == ("bins" in present) == calibrate
        assert "bins" not in missing
        if calibrate:
            assert missing["highest"] == present["highest"] == pytest.approx(1 / (1 + np.exp(-2)))
            assert [cell[:3] for cell in present["bins"]] == [[0, 2, 0], [1, 1, 0], [7, 1, 0], [13, 1, 1]]


def test_scanner_and_its_cost(tmp_path: Path, tiny_scanner: Scanner) -> None:
    records = run(tmp_path, tiny_scanner, [document()])
    assert len(records) == 2
    for record in records:
        assert record.gigaflops is not None
        assert record.gigaflops > 0
        assert record.gigaflops_padded == record.gigaflops
        assert record.peak_megabytes is None or record.peak_megabytes > 50


def test_a_scorer_that_fails_names_itself(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Given\.score_units returned shape"):
        run(tmp_path, Given(1, 2), [document()])
