import ast
import json
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.training.loop import BETAS
from spscanner_lab.training.recipe import MAY_CHANGE, Recipe, read_recipe

REPOSITORY = Path(__file__).parents[3]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_optimizer_schedule_and_batch_are_the_papers() -> None:
    recipe = read_recipe(None)
    assert (BETAS, recipe.weight_decay, recipe.gradient_clip) == (
        (0.9, 0.95),
        0.01,
        1.0,
    )
    assert (recipe.learning_rate, recipe.final_learning_rate, recipe.warmup_share) == (
        1e-4,
        1e-5,
        0.1,
    )
    assert recipe.sequences_per_step == 64
    assert recipe.dtype == "bfloat16"


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    recipe = read_recipe(
        written(
            tmp_path,
            "steps = 3\nlearning_rate = 1\nsequence_tokens = [64]\n[source_weights]\na"
            " = 2\n",
        )
    )
    assert recipe == Recipe(
        steps=3, learning_rate=1.0, sequence_tokens=(64,), source_weights={"a": 2.0}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed = 1", "unknown key 'speed'"),
        ("steps = 'many'", "steps: got 'many', expected int"),
        ("sequence_tokens = ['a']", "expected int"),
        ("source_weights = 1", "expected a table"),
        ("steps = ", "expected a TOML file"),
        ("steps = 0", r"recipe\.toml: steps is 0; expected at least 1"),
        ("sequence_tokens = [8]", "expected lengths of at least 64"),
        ("dtype = 'int8'", "expected 'bfloat16' or 'float32' or 'auto'"),
        ("ema_decay = 1.0", "expected a number from 0 to below 1"),
        (
            "stage = 'teacher'",
            "stage is 'teacher'; expected 'evidence' or 'reranker' or 'embedder'$",
        ),
        ("ranking_weight = -1", "ranking_weight is -1.0; expected at least 0"),
        (
            "lexical_soft = true",
            "lexical_soft is true without lexical_match, lexical_prior and",
        ),
        (
            "stage = 'reranker'\nlexical_match = true",
            "lexical_prior is true, which stage 'reranker' does not use",
        ),
        (
            "stage = 'reranker'\nrerank_negatives = 0",
            "rerank_negatives is 0; expected at least 1",
        ),
        (
            "lexical_surroundings = true",
            "lexical_surroundings is true without lexical_prior",
        ),
        (
            "rerank_negatives = 3\nrerank_random = 4",
            (
                "rerank_random is 4 and rerank_negatives is 3; expected at most as many"
                " random ones"
            ),
        ),
        ("held_out_sources = 'a'", "held_out_sources: got 'a'"),
        ("positive_weight = true", "positive_weight: got True, expected float"),
    ],
)
def test_what_no_run_can_use_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_recipe(written(tmp_path, text))


@given(st.sampled_from([field.name for field in fields(Recipe)]))
def test_a_run_goes_on_unless_a_key_differs_that_may_not(name: str) -> None:
    saved = json.loads(json.dumps(asdict(Recipe())))
    assert Recipe().difference(saved) is None
    assert (Recipe().difference(saved | {name: "another"}) is None) == (
        name in MAY_CHANGE
    )
    del saved[name]  # an older version did not have this key
    assert Recipe().difference(saved) is None
    assert (
        Recipe().difference(saved | {"gone": 0.3})
        == "gone was 0.3 and is no longer a key"
    )


RECIPES = sorted((REPOSITORY / "examples" / "training").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_the_recipes_in_examples_can_be_read(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.stage == (
        path.stem if path.stem in ("reranker", "embedder") else "evidence"
    )


def table_of_keys() -> str:
    """The table of ``docs/training.md``, from the source of the recipe."""
    source = (REPOSITORY / "spscanner_lab" / "training" / "recipe.py").read_text(
        encoding="utf-8"
    )
    (recipe,) = (
        n
        for n in ast.parse(source).body
        if isinstance(n, ast.ClassDef) and n.name == "Recipe"
    )
    rows, keys = ["| key | default | meaning |", "|---|---|---|"], list[str]()
    for node in recipe.body[1:]:
        if isinstance(node, ast.AnnAssign):
            keys.append(ast.unparse(node.target))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            defaults = [getattr(Recipe(), key) for key in keys]
            shown = [json.dumps({} if value is None else value) for value in defaults]
            shown = shown[:1] if len(set(shown)) == 1 else shown
            cells = (
                ", ".join(f"`{key}`" for key in keys),
                ", ".join(shown),
                node.value.value,
            )
            rows.append(
                f"| {' | '.join(' '.join(str(cell).split()) for cell in cells)} |"
            )
            keys.clear()
    return "\n".join(rows)


def test_the_page_on_training_has_every_key() -> None:
    page = (REPOSITORY / "docs" / "training.md").read_text(encoding="utf-8")
    assert table_of_keys() in page, (
        f"docs/training.md needs this table:\n{table_of_keys()}"
    )
