"""The time of tokenizing, apart from computing."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spscanner_lab.evaluation import questioner, tokenization_time
from spscanner_lab.evaluation.corpora import documents_alone
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import RecordFile
from spscanner_lab.evaluation.setting_run import SettingRun
from spscanner_lab.evaluation.tokenization_time import (
    tokenization_seconds,
    tokenize_of,
)
from spscanner_lab.evaluation.work import ENCODER_BATCH, CutText
from spscanner_lab.evidence.sampling import sample_questions
from spscanner_rag import Scanner
from spscanner_rag.baselines import BM25, Dense
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.fakes import words
from tests.lab.evaluation.tiny_study import Given, document

TEXT = "The otter swims. A heron flies. " * 40
UNITS = SentenceSegmenter().segment(TEXT)


class Encodes:
    """A model of sentence-transformers whose tokenizer keeps what it got."""

    max_seq_length = 64
    similarity_fn_name = "cosine"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: list[str], **options: object) -> np.ndarray:
        return np.ones((len(texts), 2), np.float32)

    def tokenizer(self, texts: list[str], **options: Any) -> None:
        assert options["max_length"] == 64
        self.batches.append(texts)


def test_an_embedding_model_tokenizes_batches_of_units_and_the_queries() -> None:
    model = Encodes()
    tokenize = tokenize_of(Dense(model))
    assert tokenize is not None
    tokenize(["Who?", "What?"], CutText(TEXT, UNITS))
    assert list(map(len, model.batches)) == [ENCODER_BATCH, ENCODER_BATCH, 16, 2]
    assert model.batches[-1] == ["Who?", "What?"]
    lengths = [len(text) for batch in model.batches[:-1] for text in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_a_scanner_tokenizes_what_it_reads(tiny_scanner: Scanner) -> None:
    tokenize = tokenize_of(tiny_scanner)
    assert tokenize is not None
    seconds = tokenization_seconds(tokenize, ["Who?"], CutText(TEXT, UNITS))
    assert 0 < seconds < 5


def test_no_such_time_without_a_tokenizer() -> None:
    assert tokenize_of(BM25()) is None
    assert tokenize_of(Dense(lambda texts: np.ones((len(texts), 2)))) is None


def test_records_have_the_seconds_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 5 seconds for two questions, 3 are spent on tokens: 2.5 and 1 a question."""
    clock = iter([10.0, 15.0, 20.0, 23.0])
    fake = SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr(questioner, "time", fake)
    monkeypatch.setattr(tokenization_time, "time", fake)
    tokenized: list[Sequence[str]] = []

    def tokenize(queries: Sequence[str], text: CutText) -> None:
        tokenized.append(queries)

    monkeypatch.setattr(questioner, "tokenize_of", lambda scorer: tokenize)
    setting = Setting("mine")
    questions = sample_questions([document()])
    run = SettingRun(setting, setting, lambda: documents_alone(questions))
    file = RecordFile(tmp_path, {})
    Questioner(run, {setting: Given(otter=1.0)}, words).ask_all({}, file)
    assert len(file.records) == 2
    for record in file.records.values():
        assert record.metrics["seconds"] == 2.5
        assert record.metrics["seconds_computing"] == 1.0
    assert [len(queries) for queries in tokenized] == [2]
