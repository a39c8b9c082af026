"""Training of an in-context retriever: batches, losses, resumed runs."""

import math
import random
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_lab.in_context import training
from spscanner_lab.in_context.block_search import read_corpus
from spscanner_lab.in_context.model import BlockSearchModel
from spscanner_lab.in_context.training import (
    PUBLISHED,
    InContextObjective,
    auxiliary_loss,
    auxiliary_targets,
    batch_loss,
    batch_of,
    digits_after,
    gate_at,
    sampled_digits,
)
from spscanner_lab.training.data.passages import PassageColumn, word_scores
from spscanner_lab.training.loop import Trainer
from spscanner_lab.training.recipe import Recipe
from tests.lab.in_context.conftest import TEXTS, small

RECIPE = replace(
    PUBLISHED,
    steps=4,
    sequences_per_step=2,
    learning_rate=1e-2,
    final_learning_rate=1e-3,
    save_every=2,
    warmup_share=0.1,
)
COLUMN = PassageColumn(
    "Where was the otter?", ("The otter slept.", "The lynx slept.", "Nothing.")
)
CANDIDATES = torch.tensor([[[7, 4, 2, 1], [7, 4, 9, 9], [0, 4, 2, 1]]])
WEIGHTS = torch.tensor([[0.5, 0.3, 0.2]])


def test_the_auxiliary_loss_by_hand_for_three_candidates() -> None:
    prefixes = torch.tensor([[7, 4, 9, 0]])
    targets, known = auxiliary_targets(prefixes, CANDIDATES, WEIGHTS)
    expected = torch.zeros(4, 10)
    # all three candidates follow the empty prefix
    expected[0, 7], expected[0, 0] = (
        0.8,
        0.2,
    )
    expected[1, 4] = 1.0  # two candidates begin with 7
    expected[2, 2], expected[2, 9] = 0.5 / 0.8, 0.3 / 0.8  # the two that begin with 74
    expected[3, 9] = 1.0  # 749: only the second
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
    torch.testing.assert_close(
        auxiliary_loss(logits, prefixes, CANDIDATES, WEIGHTS), by_hand / 4
    )
    # places after a prefix that no code has are skipped
    prefixes = torch.tensor([[0, 9, 2, 1]])
    filled = (
        torch.cat([CANDIDATES, prefixes[None]], 1),
        torch.cat([WEIGHTS, torch.zeros(1, 1)], 1),
    )
    assert auxiliary_targets(prefixes, *filled)[1].tolist() == [
        [True, True, False, False]
    ]
    targets, known = auxiliary_targets(prefixes, CANDIDATES, WEIGHTS)
    assert known.tolist() == [[True, True, False, False]]
    assert targets[0, 2:].sum() == 0
    by_hand = -(0.8 * steps[0, 7] + 0.2 * steps[0, 0] + steps[1, 4]) / 2
    torch.testing.assert_close(
        auxiliary_loss(logits, prefixes, CANDIDATES, WEIGHTS), by_hand
    )


def test_digit_logits_are_those_after_the_digits_before(
    model: BlockSearchModel,
) -> None:
    documents = read_corpus(model, TEXTS)
    questions = ["Who signed it?", "What fell again and again?", "Who left it?"]
    queries = [model.query_ids(question)[0] for question in questions]
    digits = torch.tensor([[7, 4, 2, 1], [0, 0, 3, 9], [1, 2, 3, 4]])
    with torch.no_grad():
        found = digits_after(model, queries, documents, digits[:, :-1])
        for number, query in enumerate(queries):
            code = torch.tensor(model.layout.digits)[digits[number]]
            for place in range(4):
                read = model.read_queries(
                    torch.cat([query, code[:place]])[None], documents
                )
                torch.testing.assert_close(
                    found[number, place], read.logits[0, -1], rtol=0, atol=1e-5
                )


def test_digits_are_drawn_from_the_models_own_probabilities(
    model: BlockSearchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = read_corpus(model, TEXTS)
    query = model.query_ids("Who signed it?")
    drawn: list[torch.Tensor] = []

    def draw(probabilities: torch.Tensor, count: int) -> torch.Tensor:
        drawn.append(probabilities)
        return (
            torch.tensor([[7], [4]])
            if len(drawn) == 1
            else torch.ones(2, count, dtype=torch.int64)
        )

    monkeypatch.setattr(torch, "multinomial", draw)
    assert sampled_digits(model, [query[0]] * 2, documents).tolist() == [
        [7, 1, 1, 1],
        [4, 1, 1, 1],
    ]
    with torch.no_grad():
        for row, digits in enumerate(([7, 1, 1], [4, 1, 1])):
            tokens = torch.tensor([[model.layout.digits[digit] for digit in digits]])
            read = model.read_queries(torch.cat([query, tokens], 1), documents)
            expected = read.logits[0, query.shape[1] - 1 :].softmax(-1)
            found = torch.stack([probabilities[row] for probabilities in drawn])
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


class Columns:
    """Questions about animals, each with two wrong passages."""

    def column(self, number: int) -> PassageColumn:
        names = ["otter", "lynx", "heron", "vole"]
        right = names.pop(number % len(names))
        return PassageColumn(
            f"Where was the {right}?",
            tuple(
                f"The {name} slept in barn {number}." for name in (right, *names[:2])
            ),
        )


def test_a_batch_shares_its_documents_and_draws_codes_anew() -> None:
    other = PassageColumn(
        "Where was the lynx?", ("The lynx slept.", "The otter slept.", "It rained.")
    )
    batch = batch_of([COLUMN, other], random.Random(0))
    assert sorted(batch.texts) == [
        "It rained.",
        "Nothing.",
        "The lynx slept.",
        "The otter slept.",
    ]
    assert [[batch.texts[n] for n in column] for column in batch.columns] == [
        list(COLUMN.passages),
        list(other.passages),
    ]
    assert len(set(batch.codes)) == 4
    assert batch_of([COLUMN, other], random.Random(1)).codes != batch.codes
    scores = word_scores(COLUMN._replace(question="lynx"))
    assert scores[0] > scores[1] > scores[2], (
        "the labelled passage is the teacher's best"
    )


def test_the_first_digits_are_guessed_and_the_auxiliary_loss_needs_its_weight(
    digit_tokenizer: Tokenizer,
) -> None:
    model = small(digit_tokenizer)
    batch = batch_of([COLUMN], random.Random(0))
    of_digits = batch_loss(model, batch).item()
    assert of_digits == pytest.approx(2.3026, abs=0.1)
    whole = batch_loss(model, batch, auxiliary_weight=0.5)
    assert whole.item() == pytest.approx(1.5 * of_digits, abs=0.2)
    whole.backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    assert model.scalars.grad is not None
    assert model.scalars.grad.abs().min() > 0


@pytest.mark.parametrize(
    ("step", "weight"), [(0, 0.0), (5, 0.25), (10, 0.5), (99, 0.5)]
)
def test_sixteen_queries_share_a_corpus_and_the_auxiliary_weight_rises_over_the_warm_up(
    step: int,
    weight: float,
    digit_tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[training.ColumnBatch, float]] = []

    def counted(model: BlockSearchModel, *given: Any) -> torch.Tensor:
        seen.append(given)
        return torch.ones(())

    monkeypatch.setattr(training, "batch_loss", counted)
    model = small(digit_tokenizer, codes="position")
    columns: Any = Columns()
    recipe = replace(RECIPE, steps=100)
    objective = InContextObjective(columns, model.layout, recipe)
    examples = [objective.example(40 * step + number, 0) for number in range(40)]
    losses = list(objective.losses(model, examples, range(40)))
    assert [len(batch.questions) for batch, _ in seen] == [16, 16, 8]
    assert sum(losses).item() == pytest.approx(1.0)
    assert all(batch.codes == list(range(len(batch.texts))) for batch, _ in seen)
    assert [own for _, own in seen] == pytest.approx([weight] * 3)


@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (1250, 0.5), (4081, 1.0)])
def test_the_sink_is_ramped_in_with_corpora_of_128_to_5000_documents(
    step: int, share: float
) -> None:
    gates = [gate_at(step, 4082, random.Random(seed)) for seed in range(200)]
    assert [gate.share for gate in gates] == pytest.approx([share] * 200)
    lengths = sorted(gate.length for gate in gates)
    assert 0 <= lengths[0] < 0.3
    assert 3.3 < lengths[-1] <= math.log(5000 / 128)
    assert lengths[100] == pytest.approx(math.log(5000 / 128) / 2, abs=0.4)


def trainer(
    model: BlockSearchModel, out: Path, recipe: Recipe = RECIPE, **options: Any
) -> Trainer:
    passages = options.pop("passages", Columns())
    objective = InContextObjective(passages, model.layout, recipe, **options)
    return Trainer(model, objective, recipe, out, inputs=objective.inputs)


def test_a_run_is_resumed_with_the_same_auxiliary_weight(
    digit_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    # the state is that of step 2
    list(islice(trainer(small(digit_tokenizer), tmp_path).run(), 3))
    assert [step.step for step in trainer(small(digit_tokenizer), tmp_path).run()] == [
        3,
        4,
    ]
    with pytest.raises(ValueError, match="auxiliary loss has other content"):
        trainer(small(digit_tokenizer), tmp_path, auxiliary_weight=0.1)


def test_training_lowers_the_loss(
    digit_tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        training, "draw_codes", lambda documents, *_: [7421, 120, 9035][:documents]
    )
    recipe = replace(RECIPE, steps=30, sequences_per_step=1)

    class Single:
        def column(self, number: int) -> PassageColumn:
            return PassageColumn("Which?", ("Nothing.",))

    run = trainer(
        small(digit_tokenizer),
        tmp_path,
        recipe,
        auxiliary_weight=0.0,
        passages=Single(),
    ).run()
    losses = [step.loss for step in run]
    assert losses[0] == pytest.approx(math.log(10), abs=0.1)
    assert losses[-1] < 0.5
