import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_rag.checkpoint import load_model
from spscanner_rag.evidence.questions import Document
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.examples import Example, ExampleSource
from spscanner_rag.training.data.teacher import Teacher, TeacherScores
from spscanner_rag.training.loop import (
    LOG_FILE,
    STATE_FILE,
    Trainer,
    TrainingLog,
    check_workers,
    drawn_steps,
    learning_rate_at,
)
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.stages.evidence_objective import EvidenceObjective

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


def trainer(
    folder: Path,
    checkpoint: Path,
    documents: list[Document],
    reading: Reading,
    recipe: Recipe = RECIPE,
    teacher: TeacherScores | None = None,
) -> Trainer:
    model = load_model(checkpoint)
    source = ExampleSource(DocumentStore(documents), reading, recipe, teacher)
    return Trainer(model, EvidenceObjective(source, recipe, model.config.d_model), recipe, folder)


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


def test_a_killed_run_goes_on_with_the_same_result(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    whole = trainer(tmp_path / "whole", tiny_checkpoint, documents, reading)
    list(whole.run())
    killed = trainer(tmp_path / "killed", tiny_checkpoint, documents, reading)
    run = killed.run()
    for _ in range(7):  # killed after step 7; the state is that of step 6
        next(run)
    resumed = trainer(tmp_path / "killed", tiny_checkpoint, documents, reading)
    assert resumed.step == 6
    list(resumed.run())
    expected, got = weights(whole), weights(resumed)
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=0, msg=name)
    steps = [json.loads(line)["step"] for line in (tmp_path / "killed" / LOG_FILE).read_text().splitlines()]
    assert steps == list(range(1, 13))


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


def test_norms_and_decays_are_not_decayed(
    tmp_path: Path, tiny_checkpoint: Path, documents: list[Document], reading: Reading
) -> None:
    run = trainer(tmp_path, tiny_checkpoint, documents, reading)
    names = {id(parameter): name for name, parameter in run.model.named_parameters()}
    free = next(group for group in run.optimizer.param_groups if group["weight_decay"] == 0.0)
    kinds = {names[id(parameter)].rsplit(".", 1)[-1] for parameter in free["params"]}
    assert kinds == {"A_log", "D", "dt_bias", "bias", "weight"}  # weight: of norms
    assert all(parameter.dim() == 1 for parameter in free["params"])


def test_the_rate_warms_up_and_ends_at_the_final_one() -> None:
    recipe = Recipe(steps=100, learning_rate=1.0, final_learning_rate=0.1, warmup_share=0.1)
    rates = [learning_rate_at(step, recipe) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == pytest.approx(1.0)
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.1, abs=2e-3)


def test_a_log_goes_on_where_the_run_does(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "log.jsonl")
    log.keep_until(0)
    assert not log.path.exists()
    for step in (1, 2, 3):
        log.append({"step": step, "loss": 0.5})
    log.append({"step": 3, "validation": {"all": {"10": 0.5}}})
    assert log.has_validation(3)
    assert not log.has_validation(2)
    log.append({"step": 4, "loss": 0.5})
    with log.path.open("a") as file:
        file.write('{"step": 5, "lo')  # killed while it was written
    log.keep_until(3)
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [1, 2, 3, 3]
    log.keep_until(2)
    assert not log.has_validation(3)
    log.append({"step": 3, "loss": 0.4})
    assert json.loads(log.path.read_text().splitlines()[-1]) == {"step": 3, "loss": 0.4}


DRAWN = Recipe(sequences_per_step=2, sequence_tokens=(128, 192, 256))


@pytest.fixture
def objective(documents: list[Document], reading: Reading) -> EvidenceObjective:
    return EvidenceObjective(ExampleSource(DocumentStore(documents), reading, DRAWN), DRAWN, 16)


def taken(objective: EvidenceObjective, steps: range, workers: int) -> list[tuple[int, list[Example]]]:
    return list(drawn_steps(objective, DRAWN, steps, workers))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more processes than there are cores
def test_steps_are_the_same_whoever_draws_them(objective: EvidenceObjective) -> None:
    alone = taken(objective, range(3, 15), 0)
    assert len({length for length, _ in alone}) > 1
    together = taken(objective, range(3, 15), 2)
    for (length, examples), (other_length, others) in zip(alone, together, strict=True):
        assert length == other_length
        for example, other in zip(examples, others, strict=True):
            np.testing.assert_array_equal(example.sequence.input_ids, other.sequence.input_ids)
            np.testing.assert_array_equal(example.relevant, other.relevant)
    assert [length for length, _ in taken(objective, range(5, 8), 0)] == [length for length, _ in alone[2:5]]


def test_processes_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="workers is -1; expected 0 or more"):
        check_workers(-1)
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    check_workers(0)
    with pytest.raises(ValueError, match="cannot fork processes: expected 0"):
        check_workers(2)
