"""The sequences of coming steps, drawn in processes of their own while a step is computed."""

import multiprocessing
import random
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, Dataset

from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.stages.stage import Objective

STEPS_AHEAD = 4
"""Steps that each process draws in advance."""


def check_workers(workers: int) -> None:
    """Raise ``ValueError`` for a number of processes that cannot be had."""
    if workers < 0:
        raise ValueError(f"workers is {workers}; expected 0 or more processes")
    if workers and "fork" not in multiprocessing.get_all_start_methods():
        raise ValueError(f"workers is {workers}; this system cannot fork processes: expected 0")


def drawn_steps(
    objective: Objective, recipe: Recipe, steps: range, workers: int
) -> Iterator[tuple[int, object]]:
    """Length and sequences of each step, in order; the same however many processes draw them.

    Parameters
    ----------
    objective : Objective
    recipe : Recipe
    steps : range
        Counted from 0.
    workers : int
        Processes; 0 draws each step when it is asked for.
    """
    loader = DataLoader(
        _Steps(objective, recipe),
        batch_size=None,
        sampler=steps,
        num_workers=workers,
        collate_fn=_as_it_is,
        multiprocessing_context="fork" if workers else None,  # documents and tokenizer are shared, not copied
        prefetch_factor=STEPS_AHEAD if workers else None,
    )
    yield from loader


class _Steps(Dataset[tuple[int, object]]):
    def __init__(self, objective: Objective, recipe: Recipe) -> None:
        self._objective, self._recipe = objective, recipe

    def __getitem__(self, step: int) -> tuple[int, object]:
        recipe = self._recipe
        length = random.Random(f"{recipe.seed}-length-{step}").choice(recipe.sequence_tokens)
        return length, self._objective.draw(step, length)


def _as_it_is(drawn: Any) -> Any:  # noqa: ANN401 - torch would make tensors of arrays
    return drawn
