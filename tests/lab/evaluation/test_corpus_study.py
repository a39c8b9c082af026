"""What a run on corpora asks of each setting, and what it makes of the records."""

from dataclasses import replace
from pathlib import Path

import pytest

from spscanner_rag.baselines import BM25
from spscanner_rag.lab.evaluation.corpus_study import CorpusStudy, corpus_study_of
from spscanner_rag.lab.evaluation.records import RecordFile
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question

SETTINGS = [Setting("scanner"), Setting("bm25"), Setting("dense", "chunk"), Setting("hybrid:bm25+dense")]


def document(animal: str) -> Document:
    text = f"The {animal} swims. It rained on the {animal}. Then it stopped."
    return Document(
        animal, "wild", f"On {animal}s", text, (Question("q", f"Who saw the {animal}?", ((4, 9),)),)
    )


DOCUMENTS = [document(animal) for animal in ("otter", "heron", "vole")]


def asked(study: CorpusStudy) -> list[tuple[str, str | None, int | None]]:
    return [
        (ask.setting.label, ask.reading.first_stage, ask.reading.among)  # type: ignore[misc]
        for ask in study.asks
    ]


def test_a_first_stage_is_for_retrievers_without_an_index() -> None:
    study = corpus_study_of(SETTINGS, DOCUMENTS, first_stages=["bm25", "none", "dense:x"], read_documents=2)
    indexed = [("bm25", None, None), ("dense, chunks", None, None), ("hybrid:bm25+dense", None, None)]
    assert asked(study) == [
        ("scanner, 2 documents by bm25", "bm25", None),
        ("scanner", None, None),
        ("scanner, 2 documents by dense:x", "bm25", None),
        *indexed,
    ]
    assert study.stages == [Setting("dense:x", "chunk")]
    assert [ask.stage for ask in study.asks] == [None, None, Setting("dense:x", "chunk"), None, None, None]
    assert [ask.scorer for ask in study.asks] == [SETTINGS[0]] * 3 + SETTINGS[1:]
    assert {ask.reading.documents for ask in study.asks if ask.reading.first_stage} == {2}
    assert asked(corpus_study_of(SETTINGS[:1], DOCUMENTS, among=2)) == [("scanner", None, 2)]


def test_arguments_tell_runs_apart() -> None:
    plain = corpus_study_of(SETTINGS, DOCUMENTS).arguments
    assert corpus_study_of(SETTINGS[:1], DOCUMENTS[::-1], first_stages=["bm25"]).arguments == plain
    others = [
        corpus_study_of(SETTINGS, DOCUMENTS, among=2),
        corpus_study_of(SETTINGS, DOCUMENTS, characters=40),
        corpus_study_of(SETTINGS, DOCUMENTS, 1),
        corpus_study_of(SETTINGS, [*DOCUMENTS, replace(document("badger"), questions=())]),
    ]
    assert all(other.arguments != plain for other in others)


def test_a_run_and_its_result(tmp_path: Path) -> None:
    settings = [Setting("mamba:x"), Setting("bm25"), Setting("bm25", "chunk")]
    study = corpus_study_of(settings, DOCUMENTS, first_stages=["crossencoder:y"], read_documents=1)
    file, titles = RecordFile(tmp_path, {}), dict[str, str]()
    scorers = {setting: BM25(setting.unit) for setting in [*settings, *study.stages]}  # type: ignore[arg-type]
    for ask in study.asks:
        ask.run(scorers, titles, lambda text: len(text.split()), file)
    assert len(file.records) == 9
    assert titles == {d.text: d.title for d in DOCUMENTS}
    result = study.result(list(file.records.values()))
    names = ["mamba:x, 1 documents by crossencoder:y", "bm25", "bm25, chunks"]
    assert [setting.label for setting in result.settings] == names
    tested = [(row["first"], row["second"], row["metric"]) for row in result.differences]
    assert tested == [
        (names[0], "bm25", "document_mrr"),
        (names[0], "bm25", "recall@10"),
        (names[0], "bm25, chunks", "document_mrr"),
        (names[0], "bm25, chunks", "recall_at_tokens@1000"),
    ]
    read = {row["retriever"]: row["value"] for row in result.rows if row["metric"] == "documents_read"}
    assert read == {names[0]: 1, "bm25": 3}
    assert [table.title for table in result.tables] == ["The right document", "The corpora"]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="--among: got 1 documents; expected at least 2"):
        corpus_study_of(SETTINGS, DOCUMENTS, among=1)
    with pytest.raises(ValueError, match="has 3 documents; expected at least 4"):
        corpus_study_of(SETTINGS, DOCUMENTS, among=4)
    with pytest.raises(ValueError, match="has 1 document; expected at least 2"):
        corpus_study_of(SETTINGS, DOCUMENTS[:1])
