"""Search in a corpus that was read once, and the retriever made from it."""

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.in_context.block_search import (
    BEAM,
    PUBLISHED_DIGITS_AFTER,
    BlockSearch,
    FoundDocuments,
    logits_of,
    read_corpus,
    search,
)
from spscanner_lab.in_context.model import BlockSearchModel
from spscanner_lab.in_context.prompt import digits_of
from spscanner_rag.baselines.names import check_name, scorer_of
from spscanner_rag.scorers import ScanCancelled, score_batch
from tests import fakes
from tests.lab.in_context.conftest import TEXTS, with_settings

TEXT = "\n\n".join(TEXTS)
QUERY = "Who signed the treaty?"
MANY = [f"{text} Part {part}." for part in range(4) for text in TEXTS]


@torch.inference_mode()
def enumerated(model: BlockSearchModel, texts: list[str]) -> np.ndarray:
    """Log-probability of each document's code: (documents,).

    A code is read after the query in one pass.
    """
    documents = read_corpus(model, texts)
    query = model.query_ids(QUERY)
    routed = model.read_queries(query, documents).selected
    found = []
    for code in documents.codes.tolist():
        digits = torch.tensor(
            [[model.layout.digits[digit] for digit in digits_of(code)]]
        )
        read = model.read_queries(
            torch.cat([query, digits], 1), documents, selected=routed
        )
        # (4, 10)
        steps = read.logits[0, query.shape[1] - 1 : -1].double().log_softmax(-1)
        found.append(
            sum(
                float(steps[place, digit])
                for place, digit in enumerate(digits_of(code))
            )
        )
    return np.array(found)


@pytest.mark.parametrize("best_documents", [256, 7])
def test_a_beam_of_ten_thousand_equals_enumeration(
    model: BlockSearchModel, best_documents: int
) -> None:
    routed = with_settings(model, best_documents=best_documents, routing_layer=1)
    expected = enumerated(routed, MANY)
    found = search(
        routed, read_corpus(routed, MANY), QUERY, beam=10_000, best=len(MANY)
    )
    assert found.best.tolist() == np.argsort(-expected, kind="stable").tolist()
    np.testing.assert_allclose(
        found.log_probabilities, np.sort(expected)[::-1], atol=1e-4
    )


def test_a_small_beam_finds_codes_that_exist_and_the_others_follow_by_routing(
    model: BlockSearchModel,
) -> None:
    found = search(model, read_corpus(model, MANY), QUERY, beam=3, best=2)
    assert len(found.best) == 2
    assert found.log_probabilities[0] >= found.log_probabilities[1]
    order = found.order()
    assert sorted(order.tolist()) == list(range(20))
    assert order[:2].tolist() == found.best.tolist()
    rest = found.routing[order[2:]]
    assert (np.diff(rest) <= 0).all()


@pytest.mark.parametrize("digits_after", [1, 2, PUBLISHED_DIGITS_AFTER])
def test_each_prefix_is_continued_by_its_likeliest_digits(
    model: BlockSearchModel, digits_after: int
) -> None:
    """A code is found only if each of its digits is among the best of its prefix."""
    documents = read_corpus(model, MANY)
    everything = {"beam": 10_000, "best": len(MANY)}
    whole = search(model, documents, QUERY, **everything)
    assert len(whole.best) == len(MANY)
    pruned = search(model, documents, QUERY, **everything, digits_after=digits_after)
    best = set(pruned.best.tolist())
    in_order = [number for number in whole.best.tolist() if number in best]
    assert in_order == pruned.best.tolist()
    by_prefix: dict[tuple[int, ...], set[int]] = {}
    for number in pruned.best:
        digits = digits_of(int(documents.codes[number]))
        for place, digit in enumerate(digits):
            by_prefix.setdefault(digits[:place], set()).add(digit)
    assert max(map(len, by_prefix.values())) <= digits_after
    if digits_after == 1:
        assert len(pruned.best) == 1
    scorer = BlockSearch(model, "document", digits_after=digits_after)
    request = [(QUERY, text, scorer.units_of(text)) for text in MANY]
    scores = np.concatenate(fakes.logits_of(score_batch(scorer, request)))
    few = search(model, documents, QUERY, digits_after=digits_after)
    np.testing.assert_allclose(scores, logits_of(few), atol=1e-4)


def test_a_corpus_is_read_in_batches(model: BlockSearchModel) -> None:
    # more than one batch
    texts = [f"Number {number}. {TEXTS[number % 5]}" for number in range(40)]
    whole = read_corpus(model, texts, seed=3)
    assert whole.documents == len(set(whole.codes.tolist())) == 40
    assert read_corpus(model, texts, seed=3).codes.tolist() == whole.codes.tolist()
    alone = model.read_documents(texts[35:36], whole.codes[35:36].tolist())
    torch.testing.assert_close(
        whole.keys[-1][:, whole.document_of == 35], alone.keys[-1]
    )
    for refused, message in (
        ([], "got an empty corpus"),
        (["x"] * 10_001, "got 10,001 documents"),
    ):
        with pytest.raises(ValueError, match=message):
            read_corpus(model, refused)


def test_texts_with_one_query_are_one_corpus_that_is_read_once(
    model: BlockSearchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = BlockSearch(model, "document")
    requests = [(QUERY, text, scorer.units_of(text)) for text in TEXTS]
    read, original = list[int](), BlockSearchModel.read_documents
    monkeypatch.setattr(
        BlockSearchModel,
        "read_documents",
        lambda self, texts, codes: (
            read.append(len(texts)) or original(self, texts, codes)
        ),
    )
    empty = (QUERY, " ", [])
    scored = fakes.logits_of(score_batch(scorer, [*requests[:2], empty, *requests[2:]]))
    again = scorer.score_units_many(
        [("Who else?", text, units) for _, text, units in requests]
    )
    assert read == [5]  # the second query used the cache
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
    found = FoundDocuments(order, log_probabilities, draw.normal(size=documents))
    logits = logits_of(found)
    assert (np.diff(logits[found.order()]) <= 0).all()
    assert np.isfinite(logits).all()


def test_long_units_are_cut_and_said(
    model: BlockSearchModel, caplog: pytest.LogCaptureFixture
) -> None:
    text = "word " * 400 + "\n\nshort"
    scorer = BlockSearch(model)
    with caplog.at_level(logging.WARNING):
        assert len(scorer.score_units(QUERY, text, scorer.units_of(text))) == 2
    assert "1 of 2 units are longer than 300 tokens and were cut" in caplog.text


def test_by_name_from_a_folder_and_errors(
    model: BlockSearchModel, tmp_path: Path
) -> None:
    model.save(tmp_path)
    scorer = scorer_of(f"blocksearch:{tmp_path}")
    assert isinstance(scorer, BlockSearch)
    assert [
        TEXT[unit.start : unit.end] for unit in BlockSearch(model).units_of(TEXT)
    ] == TEXTS
    units = scorer.units_of(TEXT)
    ours = BlockSearch(model, "sentence").score_units(QUERY, TEXT, units)
    np.testing.assert_allclose(scorer.score_units(QUERY, TEXT, units), ours, atol=1e-4)
    copy = pickle.loads(pickle.dumps(scorer))
    np.testing.assert_allclose(copy.score_units(QUERY, TEXT, units), ours, atol=1e-4)
    with pytest.raises(ValueError, match="got the retriever 'blocksearch'"):
        check_name("blocksearch")
    with pytest.raises(ValueError, match="query"):
        scorer.score_units_many([(" ", TEXT, units)])
    with pytest.raises(ScanCancelled):
        BlockSearch(model).score_units_many(
            [(QUERY, TEXT, units)], cancelled=lambda: True
        )
    assert BEAM == 25
