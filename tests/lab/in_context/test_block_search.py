import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.in_context import search as search_module
from spscanner_rag.lab.in_context.block_search import BlockSearch, logits_of
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import Found, read_corpus, search
from spscanner_rag.lab.retriever_names import check_name, scorer_of
from spscanner_rag.scorers import ScanCancelled, score_batch
from tests.lab.in_context.conftest import TEXTS, digit_tokenizer, model  # noqa: F401 - fixtures

TEXT = "\n\n".join(TEXTS)
QUERY = "Who signed the treaty?"


def test_units_are_ranked_as_documents_are(model: BlockSearchModel) -> None:  # noqa: F811
    scorer = BlockSearch(model)
    units = scorer.segment(TEXT)
    assert [TEXT[unit.start : unit.end] for unit in units] == TEXTS
    logits = scorer.score_units(QUERY, TEXT, units)
    expected = search(model, read_corpus(model, TEXTS), QUERY)
    assert np.argsort(-logits, kind="stable").tolist() == expected.order().tolist()
    assert np.isfinite(logits).all()


def test_texts_with_one_query_are_one_corpus_that_is_read_once(
    model: BlockSearchModel,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scorer = BlockSearch(model, "document")
    requests = [(QUERY, text, scorer.segment(text)) for text in TEXTS]
    read: list[int] = []
    original = BlockSearchModel.read_documents

    def counted(self: BlockSearchModel, texts: list[str], codes: list[int]) -> object:
        read.append(len(texts))
        return original(self, texts, codes)

    monkeypatch.setattr(BlockSearchModel, "read_documents", counted)
    empty = (QUERY, " ", [])
    scored = list(score_batch(scorer, [*requests[:2], empty, *requests[2:]]))
    again = scorer.score_units_many([("Who else?", text, units) for _, text, units in requests])
    assert read == [5]  # the second query found the cache
    assert [len(values) for values in scored] == [1, 1, 0, 1, 1, 1]
    logits = np.concatenate(scored)
    expected = search(model, read_corpus(model, TEXTS), QUERY)
    assert np.argsort(-logits, kind="stable").tolist() == expected.order().tolist()
    assert len(again) == 5


@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 1000))
def test_logits_keep_the_order(documents: int, best: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    order = draw.permutation(documents)[:best]
    log_probabilities = np.sort(np.log(draw.uniform(1e-9, 1, len(order))))[::-1]
    found = Found(order, log_probabilities, draw.normal(size=documents))
    logits = logits_of(found)
    assert (
        np.argsort(-logits, kind="stable").tolist() == found.order().tolist()
        or len(np.unique(logits)) < documents
    )
    assert (np.diff(logits[found.order()]) <= 0).all()
    assert np.isfinite(logits).all()


def test_long_units_are_cut_and_said(
    model: BlockSearchModel,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "word " * 400 + "\n\nshort"
    scorer = BlockSearch(model)
    with caplog.at_level(logging.WARNING):
        assert len(scorer.score_units(QUERY, text, scorer.segment(text))) == 2
    assert "1 of 2 units are longer than 300 tokens and were cut" in caplog.text


def test_by_name_from_a_folder_and_errors(model: BlockSearchModel, tmp_path: Path) -> None:  # noqa: F811
    model.save(tmp_path)
    scorer = scorer_of(f"blocksearch:{tmp_path}")
    assert isinstance(scorer, BlockSearch)
    units = scorer.segment(TEXT)
    ours = BlockSearch(model, "sentence").score_units(QUERY, TEXT, units)
    np.testing.assert_allclose(scorer.score_units(QUERY, TEXT, units), ours, atol=1e-4)
    copy = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_allclose(copy.score_units(QUERY, TEXT, units), ours, atol=1e-4)
    with pytest.raises(ValueError, match="'blocksearch' needs a model name"):
        check_name("blocksearch")
    with pytest.raises(ValueError, match="query"):
        scorer.score_units_many([(" ", TEXT, units)])
    with pytest.raises(ScanCancelled):
        BlockSearch(model).score_units_many([(QUERY, TEXT, units)], cancelled=lambda: True)
    assert search_module.BEAM == 25
