import numpy as np
import pytest
import torch

from spscanner_rag.lab.in_context.layout import digits_of
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import read_corpus, search
from tests.lab.in_context.conftest import TEXTS

QUERY = "Who signed the treaty?"


@torch.inference_mode()
def enumerated(model: BlockSearchModel, texts: list[str]) -> np.ndarray:
    """Log-probability of every document's code, each read after the query in one pass: (documents,)."""
    documents = read_corpus(model, texts)
    query = model.query_ids(QUERY)
    routed = model.read_queries(query, documents).selected
    found = []
    for code in documents.codes.tolist():
        digits = torch.tensor([model.layout.code(code)])
        read = model.read_queries(torch.cat([query, digits], 1), documents, selected=routed)
        steps = read.logits[0, query.shape[1] - 1 : -1].double().log_softmax(-1)  # (4, 10)
        found.append(sum(float(steps[place, digit]) for place, digit in enumerate(digits_of(code))))
    return np.array(found)


@pytest.mark.parametrize("best_documents", [256, 7])
def test_a_beam_of_ten_thousand_equals_enumeration(model: BlockSearchModel, best_documents: int) -> None:
    texts = [f"{text} Part {part}." for part in range(4) for text in TEXTS]
    routed = model.with_settings(best_documents=best_documents, routing_layer=1)
    expected = enumerated(routed, texts)
    found = search(routed, read_corpus(routed, texts), QUERY, beam=10_000, best=len(texts))
    assert found.best.tolist() == np.argsort(-expected, kind="stable").tolist()
    np.testing.assert_allclose(found.log_probabilities, np.sort(expected)[::-1], atol=1e-4)


def test_a_small_beam_finds_codes_that_exist_and_the_others_follow_by_routing(
    model: BlockSearchModel,
) -> None:
    texts = [f"{text} Part {part}." for part in range(4) for text in TEXTS]
    documents = read_corpus(model, texts)
    found = search(model, documents, QUERY, beam=3, best=2)
    assert len(found.best) == 2
    assert found.log_probabilities[0] >= found.log_probabilities[1]
    order = found.order()
    assert sorted(order.tolist()) == list(range(20))
    assert order[:2].tolist() == found.best.tolist()
    rest = found.routing[order[2:]]
    assert (np.diff(rest) <= 0).all()


def test_a_corpus_is_read_in_batches_and_extended(model: BlockSearchModel) -> None:
    texts = [f"Number {number}. {TEXTS[number % 5]}" for number in range(40)]  # more than one batch
    whole = read_corpus(model, texts, seed=3)
    assert whole.documents == 40
    assert read_corpus(model, texts, seed=3).codes.tolist() == whole.codes.tolist()
    part = read_corpus(model, texts[:30], seed=1)
    extended = read_corpus(model, texts[30:], seed=1, after=part)
    assert extended.codes[:30].tolist() == part.codes.tolist()
    assert len(set(extended.codes.tolist())) == 40
    keys = extended.keys[-1][:, extended.tokens_of(torch.tensor([2, 7]))]
    torch.testing.assert_close(keys, part.keys[-1][:, part.tokens_of(torch.tensor([2, 7]))])


def test_what_cannot_be_read_is_refused_before_reading(model: BlockSearchModel) -> None:
    with pytest.raises(ValueError, match="got an empty corpus"):
        read_corpus(model, [])
    with pytest.raises(ValueError, match="got 10,001 documents"):
        read_corpus(model, ["x"] * 10_001)
    assert read_corpus(model, ["word " * 400, "short"]).cut == 1
