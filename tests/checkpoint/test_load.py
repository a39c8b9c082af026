"""Loading checkpoints in every layout, and refusing damaged ones."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.start import RunFiles, start_checkpoint
from spscanner_rag.checkpoint import (
    ScannerSettings,
    load_checkpoint,
    load_model,
    tensor_files,
)
from spscanner_rag.mamba2.model import ScannerModel
from tests.checkpoint.conftest import (
    CONFIG,
    SETTINGS,
    assert_same_weights,
    is_float32,
    outputs,
    refused,
    remove_digests,
)
from tests.checkpoint.test_config import SIZES

Edit = Callable[[dict[str, Any]], None]


def edit_config(folder: Path, edit: Edit) -> None:
    remove_digests(folder)
    config = json.loads((folder / "config.json").read_text())
    edit(config)
    (folder / "config.json").write_text(json.dumps(config))


def edit_weights(folder: Path, edit: Edit) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")
    remove_digests(folder)


def drop_head(tensors: dict[str, Any]) -> None:
    del tensors["binary_head.weight"], tensors["binary_head.bias"]


# Round trip


def test_round_trip(
    folder: Path, model: ScannerModel, tiny_tokenizer: Tokenizer
) -> None:
    loaded = load_checkpoint(folder)
    assert_same_weights(loaded.model, model)
    assert_same_weights(load_model(folder, require_head=False), model)
    assert loaded.model.config == CONFIG
    assert loaded.settings == SETTINGS
    assert loaded.tokenizer.to_str() == tiny_tokenizer.to_str()
    assert (loaded.source, loaded.folder, loaded.published) == (
        str(folder),
        folder,
        False,
    )
    assert torch.equal(outputs(loaded.model), outputs(model))


def test_loaded_in_another_precision(folder: Path, model: ScannerModel) -> None:
    loaded = load_model(folder, dtype=torch.bfloat16)
    assert loaded.dtype == torch.bfloat16
    for name, tensor in loaded.state_dict().items():
        kept = is_float32(name)
        expected = model.state_dict()[name]
        assert tensor.dtype == (torch.float32 if kept else torch.bfloat16), name
        assert torch.equal(tensor, expected if kept else expected.bfloat16()), name
    with refused(
        r"dtype is torch\.int8; expected a floating-point one, as torch\.float32"
    ):
        load_model(folder, dtype=torch.int8)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files in the order in which they are opened.

    A header is read whenever its file is opened.
    """
    names: list[str] = []
    open_path, open_safetensors = Path.open, tensor_files.safe_open

    def counted(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        names.append(self.name)
        return open_path(self, mode, *args, **options)

    def counted_safetensors(path: Path, **options: Any) -> Any:
        names.append(f"tensors of {path.name}")
        return open_safetensors(path, **options)

    monkeypatch.setattr(Path, "open", counted)
    monkeypatch.setattr(tensor_files, "safe_open", counted_safetensors)
    return names


LOADED = {
    "config.json": 1,
    "tokenizer.json": 1,
    "model.safetensors": 2,  # is it a git-LFS pointer? its SHA-256
    "tensors of model.safetensors": 2,  # the header, to check it; the tensors
}


def test_every_file_is_read_once(folder: Path, opened: list[str]) -> None:
    load_checkpoint(folder)
    assert Counter(opened) == LOADED


@pytest.mark.parametrize("head", [True, False])
def test_training_reads_no_file_again(
    folder: Path, opened: list[str], head: bool
) -> None:
    if not head:
        edit_weights(folder, drop_head)
    files = RunFiles((), (), folder.parent / "out", str(folder), None)
    opened.clear()
    start = start_checkpoint(files, Recipe(lexical_prior=True), (), torch.device("cpu"))
    assert start.has_head is head
    without_digests = LOADED | {"model.safetensors": 1}
    assert Counter(opened) == (LOADED if head else without_digests)


# The published layout


def test_published_layout(published: Path, tiny_tokenizer: Tokenizer) -> None:
    state = torch.load(published / "pytorch_model.bin", weights_only=True)
    loaded = load_checkpoint(published, tokenizer=tiny_tokenizer)
    for name, tensor in loaded.model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert loaded.settings == ScannerSettings()
    assert not loaded.published


@pytest.fixture
def neox_vocabulary(published_checkpoint: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published_checkpoint, tmp_path / "neox")


def test_the_vocabulary_of_published_scanners(
    neox_vocabulary: Path, tiny_tokenizer: Tokenizer
) -> None:
    loaded = load_checkpoint(neox_vocabulary, tokenizer=tiny_tokenizer)
    assert loaded.published
    assert loaded.settings == ScannerSettings("reference", window_tokens=120_000)


def test_our_settings_win_over_the_vocabulary(
    neox_vocabulary: Path, tiny_tokenizer: Tokenizer
) -> None:
    edit_config(
        neox_vocabulary,
        lambda config: config.update(spscanner=ScannerSettings().to_dict()),
    )
    loaded = load_checkpoint(neox_vocabulary, tokenizer=tiny_tokenizer)
    assert not loaded.published
    assert loaded.settings == ScannerSettings()


def test_no_tokenizer(published: Path) -> None:
    with refused(r"published: no tokenizer\.json there; pass tokenizer="):
        load_checkpoint(published)
    assert outputs(load_model(published)).shape == (40,)


# A base language model


@pytest.fixture
def base(folder: Path) -> Path:
    edit_weights(folder, drop_head)
    return folder


def test_a_base_model_loads_only_for_training(base: Path) -> None:
    with refused(r"without binary_head\.weight, which loads only for training"):
        load_checkpoint(base)


def test_a_new_head_is_the_same_every_time(base: Path) -> None:
    torch.manual_seed(1)
    first = load_model(base, require_head=False)
    torch.manual_seed(2)
    second = load_checkpoint(base, require_head=False).model
    assert_same_weights(first, second)
    assert first.binary_head is not None
    assert 0 < float(first.binary_head.weight.detach().abs().max()) <= 16**-0.5
    assert float(first.binary_head.bias.detach()) == 0


# Refusals


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda t: t.update({"binary_head.weight": torch.ones(2, 16)}),
            r"binary_head\.weight has shape \[2, 16\]",
        ),
        (lambda t: t.pop("surroundings.weight"), r"surroundings\.weight is missing"),
        (
            lambda t: t.update({"backbone.layers.2.norm.weight": torch.ones(16)}),
            r"layers\.2\.norm\.weight has no place",
        ),
    ],
)
def test_tensors_that_do_not_fit(folder: Path, edit: Edit, message: str) -> None:
    edit_weights(folder, edit)
    with refused(f"{folder}.*{message}"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda c: c["ssm_cfg"].pop("layer"),
            r"config\.json: ssm_cfg\.layer is missing, which means Mamba-1",
        ),
        (lambda c: c.pop("d_model"), r"config\.json: neither d_model"),
        (lambda c: c.update(spscanner=None), r"config\.json: spscanner is None"),
        (
            lambda c: c.update(vocab_size=300),
            r"config\.json: vocab_size is 300, the tokenizer has ids up to 383",
        ),
        (
            lambda c: c["spscanner"]["lexical"].update(least_units=10**30),
            r"lexical\.least_units is 1000.*at most 1,000",
        ),
        (
            lambda c: c["spscanner"].update(window_tokens=2**31),
            r"spscanner\.window_tokens is 2147483648",
        ),
        (
            lambda c: c["ssm_cfg"].update(dt_limit=[0, 10**400]),
            r"ssm_cfg\.dt_limit is \[0, 1000",
        ),
        (lambda c: c.update({"a\nb": 1}), r"config\.json: a\\x0ab is not a key"),
        (lambda c: c.update(n_layer=10**4000), r"tensor backbone"),
        (
            lambda c: c.update(n_layer=10**9),
            r"tensor backbone\.layers\.2\.norm\.weight is missing",
        ),
        (lambda c: c.update(d_model=2**20), r"embedding\.weight has shape"),
        (lambda c: c.update(d_model=2**40), "no model has such sizes"),
    ],
)
def test_configurations_that_do_not_fit(folder: Path, edit: Edit, message: str) -> None:
    edit_config(folder, edit)
    with refused(message):
        load_checkpoint(folder)


# transformers' layout


def save_transformers(folder: Path, kind: str, **keys: Any) -> Any:
    """Save a tiny model with transformers itself, with every tensor random."""
    transformers = pytest.importorskip("transformers")
    model = getattr(transformers, kind)(
        transformers.Mamba2Config(**(SIZES | keys))
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["Mamba2Model", "Mamba2ForCausalLM"])
@pytest.mark.parametrize(
    "keys",
    [{}, {"tie_word_embeddings": True}, {"use_bias": True, "use_conv_bias": False}],
)
def test_transformers_layout(tmp_path: Path, kind: str, keys: dict[str, Any]) -> None:
    original = save_transformers(tmp_path, kind, **keys)
    state = getattr(original, "backbone", original).state_dict()
    loaded = load_model(tmp_path, require_head=False)
    assert loaded.config.ngroups == 2
    for name, tensor in loaded.backbone.state_dict().items():
        assert torch.equal(tensor, state[name.replace("embedding.", "embeddings.")]), (
            name
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"n_groups": 1},
        {"n_groups": 4, "use_bias": True},
        {"layer_norm_epsilon": 1e-2},
        {"time_step_limit": [0.01, 0.05]},
        {"conv_kernel": 3, "use_conv_bias": False, "chunk_size": 16},
    ],
    ids=str,
)
def test_hidden_states_are_those_of_transformers(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    original = save_transformers(tmp_path, "Mamba2Model", **keys)
    ids = torch.randint(0, SIZES["vocab_size"], (2, 150))
    with torch.no_grad():
        expected = original(ids).last_hidden_state
        hidden, _ = load_model(tmp_path, require_head=False)(ids)
    assert float((hidden - expected).abs().max()) < 1e-4
