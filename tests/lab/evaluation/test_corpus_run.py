"""Records of questions that are asked of whole corpora."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25
from spscanner_rag.lab.evaluation.corpora import SourceCorpus, corpora_of
from spscanner_rag.lab.evaluation.corpus_run import document_metrics, run_on_corpora
from spscanner_rag.lab.evaluation.corpus_units import Shelf
from spscanner_rag.lab.evaluation.first_stage import Reading
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.text.units import Unit

SETTING = Setting("mine")
EVERYTHING = Reading()
ANIMALS = ("otter", "heron", "badger", "vole")


def document(animal: str) -> Document:
    text = f"The {animal} swims. It rained on the {animal}. Then it stopped. All went home."
    start = text.index("It rained")
    asked = Question(f"{animal}-q", f"Did it rain on the {animal}?", ((start, start + 9),))
    return Document(animal, "wild", "", text, (asked,), split="dev")


@pytest.fixture
def corpora() -> list[SourceCorpus]:
    return corpora_of([document(animal) for animal in ANIMALS])


class Given:
    """A score for each unit by its words, and the texts that it was asked to read."""

    def __init__(self, **scores: float) -> None:
        self.scores, self.read = scores, list[str]()

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        self.read.append(next(animal for animal in ANIMALS if animal in text))
        found = [
            max([self.scores.get(word.strip("."), 0.0) for word in text[u.start : u.end].split()])
            for u in units
        ]
        return np.array(found, np.float32)


def words(text: str) -> int:
    return len(text.split())


def run(
    folder: Path,
    scorer: object,
    corpora: Sequence[SourceCorpus],
    reading: Reading = EVERYTHING,
    setting: Setting = SETTING,
) -> dict[str, Record]:
    file = RecordFile(folder, {})
    run_on_corpora(setting, scorer, reading, corpora, Shelf(), words, file)  # type: ignore[arg-type]
    return {record.doc_id: record for record in file.records.values()}


def test_evidence_and_document_among_all(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    scorer = Given(rained=1, otter=1, heron=2, swims=3)
    records = run(tmp_path, scorer, corpora)
    assert sorted(records) == sorted(ANIMALS)
    record = records["vole"]  # the best sentences are the four that say "swims", then the one on the heron
    assert record.metrics["document_mrr"] == 1 / 4  # all documents have the same best score; the vole is last
    assert record.metrics["document_recall@1"] == record.metrics["document_recall@5"] - 1 == 0
    assert record.metrics["recall@5"] == 0
    assert record.metrics["recall@10"] == 1
    assert record.metrics["mrr"] == 1 / 8  # after them the badger's, otter's and vole's second sentences
    assert records["heron"].metrics["mrr"] == 1 / 5
    assert (record.documents_read, record.tokens_read, record.characters) == (
        4,
        4 * 14,
        len(document("vole").text),
    )
    assert (record.source, record.split, record.qid, record.setting_key) == (
        "wild",
        "dev",
        "vole-q",
        SETTING.key,
    )
    assert record.tokens["50"] == 4 * 14
    assert len(scorer.read) == 16
    assert [Record.read(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()] == list(
        RecordFile(tmp_path, {}).records.values()
    )


def test_after_a_first_stage(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    scorer = Given(rained=1)
    records = run(tmp_path, scorer, corpora, Reading(first_stage="bm25", documents=1))
    assert sorted(scorer.read) == sorted(ANIMALS)  # one document for each question
    for record in records.values():
        assert (
            record.metrics["document_mrr"]
            == record.metrics["document_recall@1"]
            == record.metrics["mrr"]
            == 1
        )
        assert (record.documents_read, record.tokens_read) == (1, 14)


def test_a_document_that_is_not_read_is_not_found(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    stage = Given(otter=1)
    records = run(tmp_path, Given(rained=1), corpora, Reading(first_stage=stage, documents=2))  # type: ignore[arg-type]
    read = {name for name, record in records.items() if record.metrics["document_mrr"]}
    assert read == {"otter", "badger"}  # the first in the corpus of those with the same score
    assert records["vole"].metrics["recall@50"] == 0
    assert records["vole"].metrics["document_recall@10"] == 0
    assert records["vole"].documents_read == 2


def test_no_document_shares_a_word(tmp_path: Path) -> None:
    strange = Document("x", "wild", "", "Quite another text.", (Question("q", "Zyzzyva?", ((0, 5),)),))
    corpora = corpora_of([strange, *map(document, ANIMALS)])
    records = run(tmp_path, Given(rained=1), corpora, Reading(first_stage="bm25", documents=2))
    assert records["x"].metrics["document_mrr"] == records["x"].metrics["recall@50"] == 0
    assert (records["x"].documents_read, records["x"].tokens_read) == (0, 0)


def test_among_the_hardest(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    scorer = Given(rained=1)
    records = run(tmp_path, scorer, corpora, Reading(among=2))
    assert {record.documents_read for record in records.values()} == {2}
    assert records["heron"].metrics["document_mrr"] == 0.5  # the badger comes first in the corpus
    assert len(scorer.read) == 8


def test_an_interrupted_run_resumes(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    whole = run(tmp_path, Given(rained=1), corpora)
    path = tmp_path / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:-9])
    scorer, steps = Given(rained=1), list[tuple[int, int]]()
    file = RecordFile(tmp_path, {})
    run_on_corpora(  # type: ignore[call-arg]
        SETTING, scorer, Reading(), corpora, Shelf(), words, file, lambda *step: steps.append(step)
    )
    assert len(scorer.read) == 8
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {r.doc_id: r.metrics for r in file.records.values()} == {n: r.metrics for n, r in whole.items()}


def test_evidence_of_white_space_has_no_record(tmp_path: Path) -> None:
    blank = Document(
        "x", "wild", "", "No otter swims.   Rain fell.", (Question("q", "What fell?", ((15, 17),)),)
    )
    assert set(run(tmp_path, Given(), corpora_of([blank, document("otter")]))) == {"otter"}


def test_the_collection_is_what_the_question_is_asked_of(tmp_path: Path, corpora: list[SourceCorpus]) -> None:
    class Counting(Given):
        uses_collection = True

        def score_units_many(
            self,
            requests: Sequence[tuple[str, str, Sequence[Unit]]],
            *,
            cancelled: object,
            collection: CollectionIndex,
        ) -> list[NDArray[np.float32]]:
            counted.append(len(collection))
            return [self.score_units(*request) for request in requests]

    for reading, expected in (
        (Reading(), 4),
        (Reading(first_stage="bm25", documents=1), 4),  # the counts are those of all that could be read
        (Reading(among=3), 3),
        (Reading(among=3, first_stage="bm25", documents=1), 3),
    ):
        counted: list[int] = []
        folder = tmp_path / f"{reading.among}-{reading.first_stage}"
        run(folder, Counting(rained=1), corpora, reading)
        assert set(counted) == {expected}


def test_chunks_and_real_retrievers(
    tmp_path: Path, corpora: list[SourceCorpus], tiny_scanner: Scanner
) -> None:
    for setting, scorer in ((Setting("bm25", "chunk"), BM25()), (Setting("scanner"), tiny_scanner)):
        records = run(tmp_path / setting.unit, scorer, corpora, setting=setting)
        assert len(records) == 4
        assert all(record.metrics["recall@50"] == 1 for record in records.values())
    chunks = run(tmp_path / "chunk", BM25(), corpora, setting=Setting("bm25", "chunk"))
    assert (
        chunks["vole"].metrics["mrr"] == chunks["vole"].metrics["document_mrr"]
    )  # one chunk is one document


def test_document_metrics_by_hand() -> None:
    scores = [np.array([1.0, -2.0]), np.zeros(0), np.array([3.0])]
    assert document_metrics(scores, [True, False, False]) == {
        "document_mrr": 0.5,
        "document_recall@1": 0.0,
        "document_recall@5": 1.0,
        "document_recall@10": 1.0,
    }
    assert document_metrics(scores, [False, True, False])["document_mrr"] == 1 / 3  # empty, so it is last
    assert set(document_metrics(scores, [False] * 3).values()) == {0.0}
    assert set(document_metrics([], []).values()) == {0.0}
