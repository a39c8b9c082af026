from dataclasses import replace
from pathlib import Path

import torch

from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.state_file import BEST_FILE, BestWeights


def test_the_highest_value_is_kept_and_found_again(tmp_path: Path) -> None:
    best = BestWeights(tmp_path, Recipe(), 0)
    assert best.weights(torch.device("cpu")) is None
    for step, value in ((10, 0.3), (20, 0.5), (30, 0.4), (40, 0.5)):
        offered(best, step, value)
    for found in (best, BestWeights(tmp_path, Recipe(), 35)):
        assert (found.step, found.value) == (20, 0.5)
        weights = found.weights(torch.device("cpu"))
        assert weights is not None
        assert weights["a"].item() == 20.0


def test_values_below_zero_count(tmp_path: Path) -> None:
    best = BestWeights(tmp_path, Recipe(), 0)
    offered(best, 10, -4.0)
    offered(best, 20, -3.0)
    assert best.step == 20


def test_another_run_starts_without_them(tmp_path: Path) -> None:
    offered(BestWeights(tmp_path, Recipe(), 0), 10, 0.9)
    assert BestWeights(tmp_path, replace(Recipe(), seed=1), 10).weights(torch.device("cpu")) is None
    assert not (tmp_path / BEST_FILE).exists()
    offered(BestWeights(tmp_path, Recipe(), 0), 10, 0.9)
    assert (
        BestWeights(tmp_path, Recipe(), 0).weights(torch.device("cpu")) is None
    )  # no state is there, so it starts again


def offered(best: BestWeights, step: int, value: float) -> None:
    best.offer(step, value, {"a": torch.tensor(float(step))})
