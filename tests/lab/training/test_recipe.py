import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.training.recipe import MAY_CHANGE, Recipe, read_recipe


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_optimizer_schedule_and_batch_are_the_papers() -> None:
    recipe = read_recipe(None)
    assert (recipe.betas, recipe.weight_decay, recipe.gradient_clip) == ((0.9, 0.95), 0.01, 1.0)
    assert (recipe.learning_rate, recipe.final_learning_rate, recipe.warmup_share) == (1e-4, 1e-5, 0.1)
    assert recipe.sequences_per_step == 64
    assert recipe.dtype == "bfloat16"


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    recipe = read_recipe(
        written(tmp_path, "steps = 3\nlearning_rate = 1\nsequence_tokens = [64]\n[source_weights]\na = 2\n")
    )
    assert recipe == Recipe(steps=3, learning_rate=1.0, sequence_tokens=(64,), source_weights={"a": 2.0})


@pytest.mark.parametrize(
    ("text", "weight"),
    [("", 10.0), ("positive_weight = 3", 3.0), ('positive_weight = "balanced"', "balanced")],
)
def test_a_weight_of_positives_is_a_number_or_balanced(tmp_path: Path, text: str, weight: object) -> None:
    recipe = read_recipe(written(tmp_path, text))
    assert recipe.positive_weight == weight
    assert recipe.to_dict()["positive_weight"] == weight


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed = 1", "unknown key 'speed'"),
        ("steps = 'many'", "steps: got 'many', expected int"),
        ("steps = true", "steps: got True, expected int"),
        ("sequence_tokens = ['a']", "expected int"),
        ("source_weights = 1", "expected a table"),
        ("steps = ", "expected a TOML file"),
        ("steps = 0", "steps is 0; expected at least 1"),
        ("sequence_tokens = [8]", "expected lengths of at least 64"),
        ("dtype = 'int8'", "expected 'bfloat16', 'float32' or 'auto'"),
        ("betas = [0.9]", "expected two numbers"),
        ("ema_decay = 1.0", "expected a number from 0 to below 1"),
        ("unanswerable_share = 1", "unanswerable_share is 1.0; expected a number from 0 to below 1"),
        ("stage = 'teacher'", "stage is 'teacher'; expected 'evidence' or 'language-model'"),
        ("distillation_temperature = 0", "expected a number above 0"),
        ("distillation_weight = -1", "distillation_weight is -1.0; expected at least 0"),
        ("pseudo_characters = 10", "pseudo_characters is 10; expected at least 1000"),
        ("lexical_soft = true", "lexical_soft is true without lexical_match, lexical_prior and"),
        ("lexical_surroundings = true", "lexical_surroundings is true without lexical_prior"),
        ("lexical_least_units = -1", "lexical_least_units is -1; expected at least 0"),
        ("lexical_text_weight = -1", "lexical_text_weight is -1.0; expected at least 0"),
        (
            "group_hard = 4",
            "group_documents is 4 and group_hard is 4; expected more documents than hard ones",
        ),
        (
            "rerank_negatives = 3\nrerank_random = 4",
            "rerank_random is 4 and rerank_negatives is 3; expected at most as many random ones",
        ),
        ("group_share = 0.1\ngroup_tokens = 8192", "a group has 4 stretches of 8192 tokens, more than"),
        ("group_share = 1.0", "group_share is 1.0; expected a number from 0 to below 1"),
        ("group_sources = 'a'", "group_sources: got 'a'"),
        ("schedule = 'linear'", "schedule is 'linear'; expected 'cosine' or 'constant'"),
        ("optimizer = 'sgd'", "optimizer is 'sgd'; expected 'adamw' or 'muon'"),
        ("pseudo_linked = -1", "pseudo_linked is -1; expected at least 0"),
        ("keep_best = 1", "keep_best: got 1, expected bool"),
        ("steps = 0", r"recipe\.toml: steps is 0"),
        ("positive_weight = 'paper'", "positive_weight is 'paper'; expected a number or 'balanced'"),
        ("positive_weight = true", "positive_weight: got True, expected float"),
    ],
)
def test_what_no_run_can_use_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_recipe(written(tmp_path, text))


@given(st.sampled_from([field.name for field in fields(Recipe)]))
def test_a_run_goes_on_unless_a_key_differs_that_may_not(name: str) -> None:
    saved = json.loads(json.dumps(Recipe().to_dict()))
    assert Recipe().difference(saved) is None
    assert (Recipe().difference(saved | {name: "another"}) is None) == (name in MAY_CHANGE)
    del saved[name]  # an older version did not know it
    assert Recipe().difference(saved) is None


def test_the_committed_recipe_can_be_read() -> None:
    recipe = read_recipe(Path(__file__).parents[3] / "examples" / "training" / "default.toml")
    assert recipe.lexical_match
    assert recipe.lexical_prior
    assert recipe.reanchor_tokens


RECIPES = sorted((Path(__file__).parents[3] / "examples" / "training").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_the_recipes_in_examples_can_be_read(path: Path) -> None:
    recipe = read_recipe(path)
    of_name = {"language_model": "language-model", "reranker": "reranker"}
    assert recipe.stage == of_name.get(path.stem, "evidence")


def test_the_page_on_training_has_every_key_with_its_default() -> None:
    page = (Path(__file__).parents[3] / "docs" / "training.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ")
        for line in page[page.index("## Every key") :].splitlines()
        if line.startswith("| `")
    ]
    documented = {}
    for row in rows:
        names = re.findall(r"`(\w+)`", row[0])
        defaults = [row[1]] if len(names) == 1 else re.split(r", (?![^\[]*\])", row[1])
        documented |= dict(zip(names, defaults * (len(names) if len(defaults) == 1 else 1), strict=True))
    assert set(documented) == {field.name for field in fields(Recipe)}
    for field in fields(Recipe):
        written = (
            documented[field.name].split(" ")[0]
            if "[" not in documented[field.name]
            else documented[field.name]
        )
        if field.name == "source_weights":
            assert written == "{}"
        else:
            value = list(field.default) if isinstance(field.default, tuple) else field.default  # type: ignore[arg-type]
            assert tomllib.loads(f"x = {written.strip('`')}")["x"] == value, field.name
