"""What a checkpoint has been trained on before, as its record says."""

from collections.abc import Iterator, Mapping
from typing import Any

from spscanner_rag.lab.training.recipe import Recipe


def steps_before(record: object, recipe: Recipe) -> int:
    """Steps of the recipe that would draw the examples which earlier runs drew with the same stage and seed.

    Examples are numbered, and a number with a seed is always the same example of the same data. A run from a
    checkpoint that is itself the result of such runs begins after these steps, since examples that a model has
    been trained on teach it little and are soon learnt by heart.

    Parameters
    ----------
    record : object
        The training record in the checkpoint's settings, with those of earlier runs under ``before``. Whatever is
        not a number of steps there counts as none.
    recipe : Recipe
        Of the run that begins.
    """
    examples = 0
    for run in _runs(record):
        drawn = run.get("recipe")
        drawn = drawn if isinstance(drawn, Mapping) else {}
        stage = run.get("stage", drawn.get("stage", "evidence"))
        if stage == recipe.stage and drawn.get("seed", 0) == recipe.seed:
            examples += _count(run.get("steps")) * _count(
                drawn.get("sequences_per_step", recipe.sequences_per_step)
            )
    return -(-examples // recipe.sequences_per_step)


def _runs(record: object) -> Iterator[Mapping[str, Any]]:
    while isinstance(record, Mapping):
        yield record
        record = record.get("before")


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
