import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spscanner_rag.checkpoint import load_model
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.teacher import Teacher, TeacherScores
from spscanner_rag.lab.training.loop import LOG_FILE, STATE_FILE, Trainer, learning_rate_at
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.loss import EvidenceObjective
from spscanner_rag.scan.prepare import Reading

RECIPE = Recipe(
    steps=12,
    sequence_tokens=(128, 192),
    sequences_per_step=4,
    learning_rate=3e-3,
    dtype="float32",
    ema_decay=0.9,
    ranking_weight=0.5,
    save_every=3,
)


NEEDS_MUON = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has no Muon before 2.9")


def trainer(
    folder: Path,
    checkpoint: Path,
    documents: list[Document],
    reading: Reading,
    recipe: Recipe = RECIPE,
    teacher: TeacherScores | None = None,
    workers: int = 0,
) -> Trainer:
    model = load_model(checkpoint)
    source = ExampleSource(DocumentStore(documents), reading, recipe, teacher)
    objective = EvidenceObjective(source, recipe, model.config.d_model)
    return Trainer(model, objective, recipe, folder, workers)


def weights(trained: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trained.averaged_weights().items()}


def test_the_loss_falls(
    tmp_path: Path,
    tiny_checkpoint: Path,
    documents: list[Document],
    reading: Reading,
    twos: Callable[[str], Teacher],
) -> None:
    recipe = replace(RECIPE, steps=40, teacher="twos")
    teacher = TeacherScores("twos", tmp_path / "teacher", twos)
    run = trainer(tmp_path, tiny_checkpoint, documents, reading, recipe, teacher)
    losses = [report.loss for report in run.run()]
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])


@pytest.mark.parametrize("optimizer", ["adamw", pytest.param("muon", marks=NEEDS_MUON)])
def test_a_killed_run_goes_on_with_the_same_result(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading, optimizer: str
) -> None:
    recipe = replace(RECIPE, optimizer=optimizer)
    whole = trainer(tmp_path / "whole", tiny_checkpoint, documents, reading, recipe)
    list(whole.run())
    killed = trainer(tmp_path / "killed", tiny_checkpoint, documents, reading, recipe)
    run = killed.run()
    for _ in range(7):  # killed after step 7; the state is that of step 6
        next(run)
    resumed = trainer(tmp_path / "killed", tiny_checkpoint, documents, reading, recipe)
    assert resumed.step == 6
    list(resumed.run())
    expected, got = weights(whole), weights(resumed)
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=0, msg=name)
    steps = [json.loads(line)["step"] for line in (tmp_path / "killed" / LOG_FILE).read_text().splitlines()]
    assert steps == list(range(1, 13))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_run_with_groups_goes_on_with_the_same_result(
    tmp_path: Path, tiny_checkpoint: Path, distinct: list[Document], reading: Reading, workers: int
) -> None:
    recipe = replace(RECIPE, steps=4, save_every=2, group_share=0.6, group_documents=3, group_tokens=96)
    recipe = replace(recipe, hard_place_share=0.5, collection_share=0.5, unanswerable_near_share=0.5)
    recipe = replace(recipe, unanswerable_share=0.2, tokens_per_pass=600)
    whole = trainer(tmp_path / "whole", tiny_checkpoint, distinct, reading, recipe)
    reports = list(whole.run())
    killed = trainer(tmp_path / "killed", tiny_checkpoint, distinct, reading, recipe)
    run = killed.run()
    for _ in range(3):
        next(run)
    resumed = trainer(tmp_path / "killed", tiny_checkpoint, distinct, reading, recipe, workers=workers)
    assert [report.loss for report in resumed.run()] == [report.loss for report in reports[2:]]
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(resumed)[name], value, rtol=0, atol=0, msg=name)


def test_passes_change_memory_not_the_result(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    one = trainer(tmp_path / "one", tiny_checkpoint, documents, reading, replace(RECIPE, steps=3))
    several = trainer(
        tmp_path / "several", tiny_checkpoint, documents, reading, replace(RECIPE, steps=3, tokens_per_pass=1)
    )
    for first, second in zip(one.run(), several.run(), strict=True):
        assert first.loss == pytest.approx(second.loss, rel=1e-4)
        assert first.gradient_norm == pytest.approx(second.gradient_norm, rel=1e-3)


def test_states_of_other_runs_are_refused(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    list(trainer(tmp_path, tiny_checkpoint, documents, reading).run(3))
    with pytest.raises(ValueError, match="another recipe"):
        trainer(tmp_path, tiny_checkpoint, documents, reading, replace(RECIPE, seed=1))
    (tmp_path / STATE_FILE).write_bytes((tmp_path / STATE_FILE).read_bytes()[:1000])
    with pytest.raises(ValueError, match="cannot be read"):
        trainer(tmp_path, tiny_checkpoint, documents, reading)


def test_length_and_arithmetic_may_change_when_a_run_is_resumed(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    list(trainer(tmp_path, tiny_checkpoint, documents, reading).run(3))
    other = replace(RECIPE, steps=5, dtype="bfloat16", tokens_per_pass=512, save_every=2, snapshot_every=2)
    resumed = trainer(tmp_path, tiny_checkpoint, documents, reading, other)
    assert [report.step for report in resumed.run()] == [4, 5]


def test_what_may_not_change_is_named(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    list(trainer(tmp_path, tiny_checkpoint, documents, reading).run(3))
    state = (tmp_path / STATE_FILE).read_bytes()
    with pytest.raises(ValueError, match=r"learning_rate was 0\.003 and is now 0\.5"):
        trainer(tmp_path, tiny_checkpoint, documents, reading, replace(RECIPE, learning_rate=0.5))
    assert (tmp_path / STATE_FILE).read_bytes() == state


def test_a_state_that_is_older_than_a_key_is_resumed_with_its_default(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    list(trainer(tmp_path, tiny_checkpoint, documents, reading).run(3))
    state = torch.load(tmp_path / STATE_FILE, weights_only=True)
    recipe = json.loads(state["recipe"])
    for key in ("schedule", "warmup_steps", "snapshot_every", "group_share"):
        del recipe[key]
    torch.save(state | {"recipe": json.dumps(recipe)}, tmp_path / STATE_FILE)
    assert trainer(tmp_path, tiny_checkpoint, documents, reading).step == 3
    with pytest.raises(ValueError, match='schedule was "cosine" and is now "constant"'):
        trainer(tmp_path, tiny_checkpoint, documents, reading, replace(RECIPE, schedule="constant"))


def test_a_loss_that_is_no_number_ends_the_run_before_the_weights_change(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    run = trainer(tmp_path, tiny_checkpoint, documents, reading)
    assert run.model.binary_head is not None
    with torch.no_grad():
        run.model.binary_head.bias.fill_(torch.nan)
    before = run.model.backbone.embedding.weight.clone()
    with pytest.raises(FloatingPointError, match="step 1"):
        next(run.run())
    torch.testing.assert_close(run.model.backbone.embedding.weight, before, rtol=0, atol=0)


def test_the_rate_warms_up_and_ends_at_the_final_one() -> None:
    recipe = Recipe(steps=100, learning_rate=1.0, final_learning_rate=0.1, warmup_share=0.1)
    rates = [learning_rate_at(step, recipe) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(1.0)
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.1, abs=2e-3)


def test_a_constant_rate_falls_only_in_its_last_steps() -> None:
    recipe = Recipe(
        steps=100,
        learning_rate=1.0,
        final_learning_rate=0.1,
        schedule="constant",
        warmup_steps=5,
        cooldown_share=0.2,
    )
    rates = [learning_rate_at(step, recipe) for step in range(101)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:81] == [1.0] * 76
    assert rates[85] == pytest.approx(0.1 + 0.9 * (1 - 0.5))  # a quarter of the way down, as a square root
    assert rates[80:] == sorted(rates[80:], reverse=True)
    assert rates[100] == pytest.approx(0.1)
    longer = replace(recipe, steps=1000)
    assert [learning_rate_at(step, longer) for step in range(81)] == rates[:81]


def test_a_constant_rate_without_a_cooldown_stays() -> None:
    recipe = Recipe(steps=10, learning_rate=1.0, schedule="constant", warmup_share=0.0, cooldown_share=0.0)
    assert {learning_rate_at(step, recipe) for step in range(10)} == {1.0}
