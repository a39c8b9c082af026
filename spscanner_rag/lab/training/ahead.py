"""The examples of coming steps, drawn in worker processes if there are any."""

import multiprocessing
import random
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Dataset

from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.stage import Objective

STEPS_AHEAD = 4
"""Steps that each process draws in advance."""


def check_workers(workers: int) -> None:
    """Raise ``ValueError`` for a negative number, and for processes on a system that cannot fork."""
    if workers < 0:
        raise ValueError(f"workers is {workers}; expected 0 or more processes")
    if workers and "fork" not in multiprocessing.get_all_start_methods():
        raise ValueError(f"workers is {workers}; this system cannot fork processes: expected 0")


def drawn_steps(
    objective: Objective, recipe: Recipe, steps: range, workers: int
) -> Iterator[tuple[int, list[Any]]]:
    """Length and examples of each step (from 0), in order; the same with any number of processes.

    Without ``workers`` each step is drawn when the loop asks for it; otherwise processes draw steps in advance.
    """
    yield from DataLoader(
        _Steps(objective, recipe),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        collate_fn=lambda drawn: drawn,  # the default turns arrays into tensors
        multiprocessing_context="fork" if workers else None,  # shares documents and tokenizer, not copies
        prefetch_factor=STEPS_AHEAD if workers else None,
    )


class _Steps(Dataset[tuple[int, list[Any]]]):
    def __init__(self, objective: Objective, recipe: Recipe) -> None:
        self._objective, self._recipe = objective, recipe

    def __getitem__(self, step: int) -> tuple[int, list[Any]]:
        recipe, count = self._recipe, self._recipe.sequences_per_step
        length = random.Random(f"{recipe.seed}-length-{step}").choice(recipe.sequence_tokens)
        numbers = range(step * count, (step + 1) * count)
        return length, [self._objective.example(number, length) for number in numbers]
