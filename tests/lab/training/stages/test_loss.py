from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spscanner_rag.checkpoint import load_model
from spscanner_rag.lab.training.data.examples import Example
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.evidence import evidence_loss
from spscanner_rag.mamba2.reader import TokenSequence, read_logits

RECIPE = Recipe(dtype="float32", positive_weight=3.0, sequences_per_step=2)
POSITIONS = np.array([9, 19, 29])


def example(relevant: list[bool], seed: int = 0) -> Example:
    draw = np.random.default_rng(seed)
    sequence = TokenSequence(
        draw.integers(0, 300, 30).astype(np.int32),
        POSITIONS,
        draw.integers(0, 6, 30).astype(np.uint8),
        draw.normal(size=(3, 4)).astype(np.float32),
    )
    return Example(sequence, np.array(relevant))


def loss(checkpoint: Path, recipe: Recipe, *examples: Example) -> float:
    model = load_model(checkpoint)
    return evidence_loss(model, examples, range(len(examples)), recipe).item()


def logits(checkpoint: Path, given: Example) -> torch.Tensor:
    return torch.from_numpy(read_logits(load_model(checkpoint), [given.sequence], 512)[0])


def test_the_binary_loss_is_a_mean_over_sentences_and_weighs_relevant_ones(tiny_checkpoint: Path) -> None:
    first, second = example([True, False, False]), example([False, False, True], seed=1)
    expected = [
        F.binary_cross_entropy_with_logits(
            logits(tiny_checkpoint, e), torch.tensor(e.relevant).float(), pos_weight=torch.tensor(3.0)
        ).item()
        for e in (first, second)
    ]
    assert loss(tiny_checkpoint, RECIPE, first, second) == pytest.approx(np.mean(expected), rel=1e-4)


def test_a_shift_is_a_bias_that_the_model_does_not_have(tiny_checkpoint: Path) -> None:
    recipe = replace(RECIPE, ranking_weight=0.5)
    given, model = [example([False, True, False])], load_model(tiny_checkpoint)
    shifted = evidence_loss(model, given, [0], recipe, shift=1.5).item()
    plain = evidence_loss(model, given, [0], recipe).item()
    assert model.binary_head is not None
    with torch.no_grad():
        model.binary_head.bias += 1.5
    assert shifted == pytest.approx(evidence_loss(model, given, [0], recipe).item(), rel=1e-5)
    assert shifted != pytest.approx(plain, rel=1e-3)


def test_ranking_is_a_softmax_over_the_sequence_and_nothing_without_evidence(tiny_checkpoint: Path) -> None:
    ranked = replace(RECIPE, ranking_weight=0.5)
    answered, unanswered = example([False, True, False]), example([False, False, False], seed=1)
    added = loss(tiny_checkpoint, ranked, answered) - loss(tiny_checkpoint, RECIPE, answered)
    expected = -logits(tiny_checkpoint, answered).log_softmax(0)[1].item()
    assert added == pytest.approx(0.5 * expected, rel=1e-3)
    assert loss(tiny_checkpoint, ranked, unanswered) == pytest.approx(
        loss(tiny_checkpoint, RECIPE, unanswered)
    )
