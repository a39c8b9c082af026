import importlib.util
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.loop import (
    LOG_FILE,
    STATE_FILE,
    Trainer,
    choose_training_kernels,
    keep_until,
    learning_rate_at,
    new_optimizer,
    read_state,
)
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.evidence import EvidenceObjective
from spscanner_rag.checkpoint import load_model
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scan.reading import Reading
from spscanner_rag.system.json_lines import append_records

RECIPE = Recipe(
    steps=6,
    sequence_tokens=(128, 192),
    sequences_per_step=4,
    learning_rate=3e-3,
    dtype="float32",
    ema_decay=0.9,
    ranking_weight=0.5,
    save_every=2,
)
DRAWN = replace(RECIPE, steps=4, tokens_per_pass=600, unanswerable_share=0.2)

NewTrainer = Callable[..., Trainer]


@pytest.fixture
def trainer(
    tiny_checkpoint: Path, distinct: list[Document], reading: Reading
) -> NewTrainer:
    """Makes a trainer for a folder and a recipe, which resumes the folder's state."""

    def new(folder: Path, recipe: Recipe = RECIPE, workers: int = 0) -> Trainer:
        objective = EvidenceObjective(DocumentStore(distinct), reading, recipe)
        return Trainer(load_model(tiny_checkpoint), objective, recipe, folder, workers)

    return new


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loop") / "out"


@pytest.fixture
def begun(kept: Path, tmp_path: Path, trainer: NewTrainer) -> Path:
    """A copy of a folder in which `RECIPE` did three steps and saved two of them."""
    if not kept.exists():
        list(islice(trainer(kept).run(), 3))
    return shutil.copytree(kept, tmp_path / "begun")


@pytest.mark.parametrize(("recipe", "workers"), [(RECIPE, 0), (DRAWN, 1)])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_killed_run_goes_on_with_the_same_result(
    tmp_path: Path, trainer: NewTrainer, recipe: Recipe, workers: int
) -> None:
    whole = trainer(tmp_path / "whole", recipe)
    reports = list(whole.run())
    run = trainer(tmp_path / "killed", recipe).run()
    for _ in range(3):  # killed after step 3; the state is that of step 2
        next(run)
    resumed = trainer(tmp_path / "killed", recipe, workers=workers)
    assert resumed.step == 2
    assert [report.loss for report in resumed.run()] == [
        report.loss for report in reports[2:]
    ]
    got = resumed.averaged_weights()
    for name, value in whole.averaged_weights().items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=0, msg=name)
    steps = [
        json.loads(line)["step"]
        for line in (tmp_path / "killed" / LOG_FILE).read_text().splitlines()
    ]
    assert steps == list(range(1, recipe.steps + 1))


def test_passes_change_memory_not_the_result(
    tmp_path: Path, trainer: NewTrainer
) -> None:
    recipe = replace(RECIPE, steps=2)
    one, several = (
        trainer(tmp_path / str(n), replace(recipe, tokens_per_pass=n))
        for n in (16384, 1)
    )
    for first, second in zip(one.run(), several.run(), strict=True):
        assert first.loss == pytest.approx(second.loss, rel=1e-4)
        assert first.gradient_norm == pytest.approx(second.gradient_norm, rel=1e-3)


def test_length_and_arithmetic_may_change_when_a_run_is_resumed(
    begun: Path, trainer: NewTrainer
) -> None:
    other = replace(
        RECIPE, steps=5, dtype="bfloat16", tokens_per_pass=512, save_every=2
    )
    assert [report.step for report in trainer(begun, other).run()] == [3, 4, 5]


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state["optimizer"]["param_groups"].pop(),
        lambda state: state["average"].popitem(),
        lambda state: state["average"].update({"another": torch.zeros(1)}),
        lambda state: state["average"].update(
            dict.fromkeys([next(iter(state["average"]))], torch.zeros(1))
        ),
        lambda state: state["model"].popitem(),
        lambda state: state.update(best={"weights": {"another": torch.zeros(1)}}),
    ],
)
def test_the_state_of_another_model_or_optimizer_is_refused(
    begun: Path, trainer: NewTrainer, damage: Callable[[Any], object]
) -> None:
    state = torch.load(begun / STATE_FILE, weights_only=True)
    damage(state)
    torch.save(state, begun / STATE_FILE)
    with pytest.raises(
        ValueError,
        match=r"fits another model or optimizer .*; delete it to start again",
    ):
        trainer(begun)


def test_a_loss_that_is_no_number_ends_the_run_before_the_weights_change(
    tmp_path: Path, trainer: NewTrainer
) -> None:
    run = trainer(tmp_path)
    assert run.model.binary_head is not None
    with torch.no_grad():
        run.model.binary_head.bias.fill_(torch.nan)
    before = run.model.backbone.embedding.weight.clone()
    with pytest.raises(FloatingPointError, match="step 1"):
        next(run.run())
    torch.testing.assert_close(
        run.model.backbone.embedding.weight, before, rtol=0, atol=0
    )


@pytest.mark.parametrize(
    ("schedule", "first_quarter"),
    [("cosine", 0.1 + 0.9 * (1 + 0.5**0.5) / 2), ("linear", 0.1 + 0.9 * 0.75)],
)
def test_the_rate_warms_up_and_ends_at_the_final_one(
    schedule: str, first_quarter: float
) -> None:
    recipe = Recipe(
        steps=100,
        learning_rate=1.0,
        final_learning_rate=0.1,
        warmup_share=0.2,
        schedule=schedule,
    )
    rates = [learning_rate_at(step, recipe) for step in range(101)]
    assert [rates[0], rates[19], rates[40], rates[100]] == pytest.approx(
        [0.05, 1.0, first_quarter, 0.1]
    )
    assert rates == [*sorted(rates[:20]), *sorted(rates[20:], reverse=True)]


def test_a_constant_rate_falls_only_in_its_last_steps() -> None:
    recipe = Recipe(
        steps=100,
        learning_rate=1.0,
        final_learning_rate=0.1,
        schedule="constant",
        warmup_share=0.05,
    )
    rates = [learning_rate_at(step, recipe) for step in range(101)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:81] == [1.0] * 76
    # a quarter of the cooldown: 1 - sqrt(1/4)
    assert rates[85] == pytest.approx(0.1 + 0.9 * (1 - 0.5))
    assert rates[80:] == sorted(rates[80:], reverse=True)
    assert rates[100] == pytest.approx(0.1)
    longer = replace(recipe, steps=1000, warmup_share=0.005)
    assert [learning_rate_at(step, longer) for step in range(81)] == rates[:81]
    stays = replace(recipe, warmup_share=0.0, cooldown_share=0.0)
    assert {learning_rate_at(step, stays) for step in range(100)} == {1.0}


def test_every_weight_is_trained_and_only_matrices_decay() -> None:
    shape = Mamba2Config(d_model=16, n_layer=2, vocab_size=61, d_state=8, headdim=8)
    model = ScannerModel(shape, match_embedding=True)
    optimizer = new_optimizer(model, Recipe(weight_decay=0.1))
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    assert sorted(map(id, trained)) == sorted(map(id, model.parameters()))
    free = {
        id(p)
        for group in optimizer.param_groups
        if not group["weight_decay"]
        for p in group["params"]
    }
    kinds = {
        name.rsplit(".", 1)[-1] for name, p in model.named_parameters() if id(p) in free
    }
    # weight is that of norms
    assert kinds == {
        "A_log",
        "D",
        "dt_bias",
        "bias",
        "weight",
    }
    assert all((p.dim() == 1) == (id(p) in free) for p in trained)


def test_a_log_goes_on_where_the_run_does(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    keep_until(log, 0)
    assert not log.exists()
    append_records(log, [{"step": step} for step in (1, 2, 3, 3, 4)])
    with log.open("a") as file:
        # killed while it was written
        file.write('[]\nno record\n{"step": 3}\n{"step": 5, "lo')
    keep_until(log, 3)
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [
        1,
        2,
        3,
        3,
        3,
    ]


def test_numba_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, found = torch.device("cpu"), importlib.util.find_spec
    if found("numba") is not None:
        choice = choose_training_kernels(cpu)
        assert (choice.kernels.name, choice.kernels.packs) == ("numba", True)
        assert choice.reason == "numba is installed"

    def without_numba(name: str, *arguments: Any) -> object:
        return None if name == "numba" else found(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", without_numba)
    choice = choose_training_kernels(cpu)
    assert choice.kernels.name == "torch"
    assert 'pip install ".[cpu]"' in choice.reason


# The file from which a run resumes

INPUTS = {"--data": "ab" * 32}


def saved(content: object) -> bytes:
    into = io.BytesIO()
    torch.save(content, into)
    return into.getvalue()


def zipped() -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("a", "b")
    return into.getvalue()


def state(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"step": 1, "seconds": 1.0, "optimizer": {}}
    content |= {"model": {"a": torch.arange(1000.0)}, "best": {}, "average": {}}
    recipe = json.dumps(asdict(Recipe()))
    return content | {"recipe": recipe, "inputs": json.dumps(INPUTS)} | changes


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"hello world",
            b"\0" * 100,
            b"\x80\x02]q\x00.",
            b"PK\x05\x06" + b"\0" * 18,
        ),
        zipped(),
        saved([1, 2]),
        saved({"weights": {}}),
        saved(state(step="3")),
        saved(state(step=Path("/"))),  # code
        *(saved(state(recipe=text)) for text in ("{", "[]")),
        *(saved(state(inputs=text)) for text in ("{", "[1]", "1")),
    ],
)
def test_damaged_and_foreign_files_are_one_message(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / STATE_FILE
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match="it is damaged, or another program wrote it; delete it"
    ) as caught:
        read_state(tmp_path, Recipe(), INPUTS)
    assert str(caught.value).startswith(f"{path} cannot be read (")
    assert "\n" not in str(caught.value)


def test_no_flipped_bit_changes_what_is_read(tmp_path: Path) -> None:
    path, draw = tmp_path / STATE_FILE, random.Random(0)
    whole = saved(state())
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            content = read_state(tmp_path, Recipe(), INPUTS)
        except ValueError:
            refused += 1
        else:  # in bytes without meaning, such as those between the parts
            assert content is not None
            assert content["step"] == 1
            assert torch.equal(content["model"]["a"], state()["model"]["a"])
    assert refused > 50


def test_a_state_belongs_to_a_recipe_and_inputs(tmp_path: Path) -> None:
    assert read_state(tmp_path, Recipe(), INPUTS) is None
    (tmp_path / STATE_FILE).write_bytes(saved(state()))
    found = read_state(tmp_path, Recipe(), INPUTS)
    assert found is not None
    assert found["step"] == 1
    message = (
        r"another run \(inputs: --data has other content .*\); give the same again to"
        r" resume it"
    )
    with pytest.raises(ValueError, match=message):
        read_state(tmp_path, Recipe(), {"--data": "cd" * 32})
    with pytest.raises(
        ValueError, match=r"another run \(recipe: seed was 0 and is now 1\)"
    ):
        read_state(tmp_path, replace(Recipe(), seed=1), INPUTS)
