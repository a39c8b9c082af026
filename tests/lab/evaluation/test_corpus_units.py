"""Pools of units, and their scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spscanner_lab.evaluation import corpus_units
from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.setting_run import SettingRun
from spscanner_lab.evidence.questions import Document
from spscanner_rag.baselines import BM25, Cascade, Hybrid
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.coverage import Spans
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scanner import Scanner
from tests.conftest import SMALL_TEXT
from tests.fakes import words
from tests.lab.evaluation.tiny_study import Counting

TEXT = "The otter swims. A heron flies. Rain fell all day."


def corpus_of(texts: Sequence[str]) -> SourceCorpus:
    return SourceCorpus(
        "wild",
        [
            Document(str(number), "wild", "", text, ())
            for number, text in enumerate(texts)
        ],
    )


PLACES = [
    "The otter swims. A heron flies.",
    "",
    "Rain fell. Otters rest. The end came.",
]


def test_a_pool_lies_end_to_end() -> None:
    units = corpus_of(PLACES).units("sentence")
    pool, joined = units.pool([0, 1, 2], words), "".join(PLACES)
    texts = [joined[start:end] for start, end in zip(*pool.spans, strict=True)]
    assert texts == [
        "The otter swims.",
        "A heron flies.",
        "Rain fell.",
        "Otters rest.",
        "The end came.",
    ]
    assert pool.tokens.tolist() == [3, 3, 2, 2, 3]
    assert (
        units.pool([2], words).spans.starts.tolist() == pool.spans.starts[2:].tolist()
    )
    place = units.place(2, Spans.of(units.units(2)[1:2]))
    assert joined[place.starts[0] : place.ends[0]] == "Otters rest."
    for numbers in ([], [1]):
        empty = units.pool(numbers, words)
        assert (
            len(empty.spans.starts) == len(empty.spans.ends) == len(empty.tokens) == 0
        )
        assert empty.tokens.dtype == np.int64


def test_scores_know_the_collection() -> None:
    units, scorer = corpus_of(PLACES).units("sentence"), Counting()
    scores = units.scores(scorer, ["Which otter?", "Which heron?"], [0, 1], units.every)  # type: ignore[arg-type]
    assert [[len(each.logits) for each in own] for own in scores] == [[2, 0], [2, 0]]
    units.scores(scorer, ["Which otter?"], [0], [0, 1])  # type: ignore[arg-type]
    units.scores(scorer, ["Which otter?"], [0])  # type: ignore[arg-type]
    assert scorer.asked == [
        (2, 5),
        (1, 2),
        (1, None),
    ]  # texts without units are not passed on


@pytest.mark.parametrize("wrapped", ["alone", "hybrid", "cascade", "first of a hybrid"])
@pytest.mark.parametrize("layout", ["published_checkpoint", "windowed_checkpoint"])
def test_a_scanner_has_its_own_units(
    layout: str, wrapped: str, request: pytest.FixtureRequest
) -> None:
    scanner = Scanner.from_pretrained(
        request.getfixturevalue(layout), device="cpu", dtype="float32"
    )
    scorer = {
        "alone": scanner,
        "hybrid": Hybrid([BM25(), scanner]),
        "cascade": Cascade(BM25(), scanner, unit="sentence"),
        "first of a hybrid": Hybrid([scanner, BM25()]),
    }[wrapped]
    corpus = corpus_of([SMALL_TEXT + TEXT])
    setting = Setting("scanner:any")
    setting_run = SettingRun(setting, setting, lambda: [corpus])
    questioner = Questioner(setting_run, {setting: scorer}, len)
    (scored,) = questioner.score(corpus, ["Who signed it?"])
    result = scanner.scan("Who signed it?", SMALL_TEXT + TEXT)
    units = corpus.units("sentence", scorer)
    assert [unit[:2] for unit in units.units(0)] == [
        (s.start, s.end) for s in result.sentences
    ]
    assert (
        len(scored.logits[0])
        == len(result.logits)
        != len(corpus.units("sentence").units(0))
    )
    if wrapped == "alone":
        np.testing.assert_allclose(scored.logits[0], result.logits, atol=1e-5)
    assert (
        corpus.units("sentence", scorer)
        is units
        is not corpus.units("sentence", BM25())
    )
    assert corpus.units("chunk", scorer) is corpus.units("chunk")


@pytest.mark.parametrize(("limit", "times"), [(2**30, 1), (1, 2)])
def test_a_scanner_prepares_a_document_once(
    limit: int, times: int, tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_units, "MOST_PREPARED_BYTES", limit)
    prepare, prepared = tiny_scanner.prepare, list[str]()

    def counted(text: str, **options: Any) -> PreparedDocument:
        prepared.append(text)
        return prepare(text, **options)

    monkeypatch.setattr(tiny_scanner, "prepare", counted)
    texts = [SMALL_TEXT, TEXT]
    units = corpus_of(texts).units("sentence", tiny_scanner)
    for query in ("Which otter?", "Which heron?"):
        (scores,) = units.scores(tiny_scanner, [query], [0, 1])
        for text, unit_scores in zip(texts, scores, strict=True):
            logits = tiny_scanner.scan(query, text).logits
            np.testing.assert_allclose(unit_scores.logits, logits, atol=1e-5)
    assert prepared == texts * times
