import math

import pytest
import torch

from spscanner_rag.lab.in_context.layout import digits_of
from spscanner_rag.lab.in_context.losses import (
    auxiliary_loss,
    auxiliary_targets,
    copying_loss,
    digit_loss,
    digits_after,
    sampled_digits,
)
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.in_context.search import read_corpus
from tests.lab.in_context.conftest import TEXTS, digit_tokenizer, model  # noqa: F401 - fixtures

CANDIDATES = torch.tensor([[[7, 4, 2, 1], [7, 4, 9, 9], [0, 4, 2, 1]]])
WEIGHTS = torch.tensor([[0.5, 0.3, 0.2]])


def test_the_auxiliary_loss_by_hand_for_three_candidates() -> None:
    prefixes = torch.tensor([[7, 4, 9, 0]])
    targets, known = auxiliary_targets(prefixes, CANDIDATES, WEIGHTS)
    expected = torch.zeros(4, 10)
    expected[0, 7], expected[0, 0] = 0.8, 0.2  # all three begin with nothing
    expected[1, 4] = 1.0  # the two that begin with 7
    expected[2, 2], expected[2, 9] = 0.5 / 0.8, 0.3 / 0.8  # 74
    expected[3, 9] = 1.0  # 749: the second alone
    torch.testing.assert_close(targets[0], expected)
    assert known.tolist() == [[True, True, True, True]]
    logits = torch.randn(1, 4, 10)
    steps = logits[0].log_softmax(-1)
    by_hand = -(
        0.8 * steps[0, 7]
        + 0.2 * steps[0, 0]
        + steps[1, 4]
        + (5 * steps[2, 2] + 3 * steps[2, 9]) / 8
        + steps[3, 9]
    )
    torch.testing.assert_close(auxiliary_loss(logits, prefixes, CANDIDATES, WEIGHTS), by_hand / 4)


def test_places_after_a_prefix_that_no_code_has_are_skipped() -> None:
    prefixes = torch.tensor([[0, 9, 2, 1]])
    targets, known = auxiliary_targets(prefixes, CANDIDATES, WEIGHTS)
    assert known.tolist() == [[True, True, False, False]]
    assert targets[0, 2:].sum() == 0
    logits = torch.randn(1, 4, 10)
    steps = logits[0].log_softmax(-1)
    by_hand = -(0.8 * steps[0, 7] + 0.2 * steps[0, 0] + steps[1, 4]) / 2
    torch.testing.assert_close(auxiliary_loss(logits, prefixes, CANDIDATES, WEIGHTS), by_hand)


def test_digit_logits_are_those_after_the_digits_before(model: BlockSearchModel) -> None:  # noqa: F811
    documents = read_corpus(model, TEXTS)
    questions = ["Who signed it?", "What fell again and again?", "Who left it?"]
    queries = [torch.from_numpy(model.layout.query(question)) for question in questions]
    digits = torch.tensor([[7, 4, 2, 1], [0, 0, 3, 9], [1, 2, 3, 4]])
    with torch.no_grad():
        found = digits_after(model, queries, documents, digits[:, :-1]).logits
        for number, query in enumerate(queries):
            code = torch.tensor(model.layout.digits)[digits[number]]
            for place in range(4):
                read = model.read_queries(torch.cat([query, code[:place]])[None], documents)
                torch.testing.assert_close(found[number, place], read.logits[0, -1], rtol=0, atol=1e-5)
    flat = [found[row, place].log_softmax(0)[digits[row, place]] for row in range(3) for place in range(4)]
    torch.testing.assert_close(digit_loss(found, digits), -torch.stack(flat).mean())
    assert digit_loss(torch.zeros(2, 4, 10), digits[:2]).item() == pytest.approx(math.log(10))


def test_the_copying_loss_is_that_of_the_second_code_of_each_document(model: BlockSearchModel) -> None:  # noqa: F811
    codes = [7421, 3, 9999, 120, 4567]
    by_hand = []
    with torch.no_grad():
        found = copying_loss(model, TEXTS, codes)
        for text, code in zip(TEXTS, codes, strict=True):
            ids = torch.from_numpy(model.layout.document(text, code).ids)
            logits = model.decoder(input_ids=ids[None]).logits[0, :, list(model.layout.digits)].float()
            right = digits_of(code)
            starts = [n for n in range(len(ids)) if ids[n : n + 4].tolist() == model.layout.code(code)]
            assert len(starts) == 2
            by_hand += [-logits[starts[1] + n - 1].log_softmax(0)[right[n]] for n in range(4)]
    torch.testing.assert_close(found, torch.stack(by_hand).mean(), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_digits_are_drawn_from_the_models_own_probabilities(model: BlockSearchModel) -> None:  # noqa: F811
    documents = read_corpus(model, TEXTS)
    query = torch.from_numpy(model.layout.query("Who signed it?"))
    drawn = sampled_digits(model, [query] * 200, documents)
    with torch.no_grad():
        read = model.read_queries(query[None], documents)
        first = read.logits[0, -1].softmax(-1)
        most = int(first.argmax())
        shares = torch.bincount(drawn[:, 0], minlength=10) / 200
        torch.testing.assert_close(shares, first, rtol=0, atol=0.15)
        after = torch.tensor([model.layout.digits[most]])
        second = model.read_queries(torch.cat([query, after])[None], documents).logits[0, -1].softmax(-1)
    own = drawn[drawn[:, 0] == most, 1]
    torch.testing.assert_close(torch.bincount(own, minlength=10) / len(own), second, rtol=0, atol=0.25)
