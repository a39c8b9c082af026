"""Finding, loading and saving checkpoints, in every layout, and refusing what is wrong with one."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import errors
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import (
    CheckpointError,
    ScannerSettings,
    checkpoint,
    load_checkpoint,
    load_model,
    locate,
    save_checkpoint,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

CONFIG = Mamba2Config(d_model=16, n_layer=2, vocab_size=384, d_state=8, headdim=8)
SETTINGS = ScannerSettings(
    reanchor_tokens=256, match=True, prior=True, surroundings=True, training={"steps": 3}
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FLOAT32_PARAMETERS = ("A_log", "dt_bias", "D")
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def model() -> ScannerModel:
    return ScannerModel(CONFIG, match_embedding=True, lexical_prior=True, surroundings=True)


@pytest.fixture
def folder(tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer) -> Path:
    save_checkpoint(tmp_path / "ours", model, SETTINGS, tiny_tokenizer)
    return tmp_path / "ours"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The published layout: no "spscanner", a pickled state dict with the tied language-model head."""
    plain = ScannerModel(CONFIG)
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    state = plain.state_dict()
    torch.save(state | {"lm_head.weight": state["backbone.embedding.weight"]}, folder / "pytorch_model.bin")
    return folder


def edit_config(folder: Path, edit: Edit) -> None:
    config = json.loads((folder / "config.json").read_text())
    edit(config)
    (folder / "config.json").write_text(json.dumps(config))


def edit_weights(folder: Path, edit: Edit) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def assert_same_weights(left: ScannerModel, right: ScannerModel) -> None:
    assert left.state_dict().keys() == right.state_dict().keys()
    for name, tensor in left.state_dict().items():
        assert torch.equal(tensor, right.state_dict()[name]), name


def outputs(model: ScannerModel, tokens: int = 40) -> torch.Tensor:
    ids = torch.arange(tokens)[None] % model.config.vocab_size
    classes = ids % 7 if model.match_embedding is not None else None
    with torch.no_grad():
        hidden, _ = model(ids, match_classes=classes)
        width = 1 if model.surroundings is None else 4
        prior = torch.ones(tokens, width) if model.lexical_prior is not None else None
        return model.score(hidden[0], prior)


# Round trip


def test_round_trip(folder: Path, model: ScannerModel, tiny_tokenizer: Tokenizer) -> None:
    loaded = load_checkpoint(folder)
    assert_same_weights(loaded.model, model)
    assert loaded.model.config == CONFIG
    assert loaded.settings == SETTINGS
    assert loaded.tokenizer.to_str() == tiny_tokenizer.to_str()
    assert (loaded.source, loaded.folder, loaded.published) == (str(folder), folder, False)
    assert torch.equal(outputs(loaded.model), outputs(model))


def is_float32(name: str) -> bool:
    """Decays, time steps, and what logits are made of."""
    return name.rpartition(".")[2] in FLOAT32_PARAMETERS or name.startswith(
        ("binary_head.", "lexical_prior.", "surroundings.")
    )


def test_loaded_model_can_be_used_and_trained(folder: Path) -> None:
    model = load_model(folder)
    assert not model.training
    assert not any(tensor.is_meta for tensor in [*model.parameters(), *model.buffers()])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_saved_files(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    config = json.loads((folder / "config.json").read_text())
    assert config["spscanner"] == SETTINGS.to_dict()
    assert config["ssm_cfg"]["layer"] == "Mamba2"
    assert not any(stat.S_IMODE(path.stat().st_mode) & 0o111 for path in folder.iterdir())
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert len(modes) == 1, modes  # all as the umask has it, none private


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_saved_in_another_precision(tmp_path: Path, model: ScannerModel, dtype: torch.dtype) -> None:
    save_checkpoint(tmp_path / "small", model, SETTINGS, None, dtype=dtype)
    for name, tensor in load_file(tmp_path / "small" / "model.safetensors").items():
        kept = is_float32(name)
        assert tensor.dtype == (torch.float32 if kept else dtype), name
    once = load_model(tmp_path / "small")
    save_checkpoint(tmp_path / "again", once, SETTINGS, None, dtype=dtype)
    assert_same_weights(load_model(tmp_path / "again"), once)


def test_loaded_in_another_precision(folder: Path, model: ScannerModel) -> None:
    loaded = load_model(folder, dtype=torch.bfloat16)
    assert loaded.dtype == torch.bfloat16
    for name, tensor in loaded.state_dict().items():
        kept = is_float32(name)
        expected = model.state_dict()[name]
        assert tensor.dtype == (torch.float32 if kept else torch.bfloat16), name
        assert torch.equal(tensor, expected if kept else expected.bfloat16()), name


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.bool])
def test_no_other_integer_precision(folder: Path, dtype: torch.dtype) -> None:
    expected = rf"dtype is {dtype}; expected a floating-point one, as torch\.float32, or torch\.int8"
    with pytest.raises(CheckpointError, match=expected):
        load_model(folder, dtype=dtype)


def test_a_model_in_int8_is_not_saved(folder: Path, tmp_path: Path, int8: torch.dtype) -> None:
    model = load_model(folder, dtype=int8)
    with pytest.raises(CheckpointError, match="computes in int8; load it in float32 or bfloat16 to save it"):
        save_checkpoint(tmp_path / "small", model, SETTINGS, None)
    assert not (tmp_path / "small").exists()


def test_loading_does_not_pull_in_the_compiler(folder: Path) -> None:
    program = (
        "import sys; from spscanner_rag.checkpoint import load_model; "
        "load_model(sys.argv[1]); sys.exit('torch._inductor' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(folder)], check=False).returncode == 0


def test_loading_draws_no_random_numbers(folder: Path) -> None:
    before = torch.get_rng_state()
    load_model(folder)
    assert torch.equal(torch.get_rng_state(), before)


# Saving


def test_saving_again_replaces_its_own_files_only(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    (folder / "notes.md").write_text("mine")
    (folder / "runs").mkdir()
    (folder / "runs" / "log").write_text("mine too")
    other = ScannerModel(CONFIG)
    save_checkpoint(folder, other, ScannerSettings(), tiny_tokenizer)
    assert_same_weights(load_checkpoint(folder).model, other)
    assert (folder / "notes.md").read_text() == "mine"
    assert (folder / "runs" / "log").read_text() == "mine too"
    assert len(list(folder.iterdir())) == 5


def test_saving_over_a_loaded_checkpoint(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    loaded = load_checkpoint(folder)
    expected = outputs(loaded.model)
    save_checkpoint(folder, loaded.model, loaded.settings, tiny_tokenizer)
    assert torch.equal(outputs(load_model(folder)), expected)


def test_new_parents_are_made(tmp_path: Path, model: ScannerModel) -> None:
    save_checkpoint(tmp_path / "a" / "b", model, SETTINGS, None)
    assert_same_weights(load_model(tmp_path / "a" / "b"), model)


@pytest.mark.parametrize("existing", [False, True])
def test_a_failed_save_leaves_nothing_half_written(
    folder: Path, model: ScannerModel, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    target = folder if existing else folder.parent / "new"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*args: Any, **kwargs: Any) -> None:
        Path(args[1]).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(
        CheckpointError, match=rf"{target}: cannot write .*No space left on device.*; pass a folder"
    ):
        save_checkpoint(target, model, SETTINGS, None)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["ours"]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written(tmp_path: Path, model: ScannerModel, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="cannot write the checkpoint") as caught:
        save_checkpoint(tmp_path / place, model, SETTINGS, None)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, model: ScannerModel) -> None:
    with torch.no_grad():
        model.backbone.norm_f.weight[3] = float("nan")
    with pytest.raises(CheckpointError, match=r"tensor backbone\.norm_f\.weight holds NaN"):
        save_checkpoint(tmp_path / "new", model, SETTINGS, None)
    assert not (tmp_path / "new").exists()


def test_settings_that_do_not_fit_the_model_are_not_saved(tmp_path: Path, model: ScannerModel) -> None:
    with pytest.raises(CheckpointError, match=r"tensor match_embedding\.weight: the model and its settings"):
        save_checkpoint(tmp_path / "new", model, ScannerSettings(prior=True), None)


def test_a_tokenizer_that_does_not_fit_is_not_saved(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    small = ScannerModel(Mamba2Config(d_model=16, n_layer=1, vocab_size=100, headdim=8))
    with pytest.raises(CheckpointError, match="vocab_size is 100"):
        save_checkpoint(tmp_path / "new", small, ScannerSettings(), tiny_tokenizer)


def test_training_notes_that_are_not_json_are_not_saved(tmp_path: Path, model: ScannerModel) -> None:
    settings = replace(SETTINGS, training={"when": object()})
    with pytest.raises(CheckpointError, match=r"settings\.training.*expected what JSON can hold"):
        save_checkpoint(tmp_path / "new", model, settings, None)


def test_the_saved_tokenizer_has_no_limits(
    tmp_path: Path, model: ScannerModel, tiny_tokenizer: Tokenizer
) -> None:
    limited = Tokenizer.from_str(tiny_tokenizer.to_str())
    limited.enable_truncation(max_length=4)
    save_checkpoint(tmp_path / "new", model, SETTINGS, limited)
    assert json.loads((tmp_path / "new" / "tokenizer.json").read_text())["truncation"] is None
    assert limited.truncation is not None


# The published layout


def test_published_layout(published: Path, tiny_tokenizer: Tokenizer) -> None:
    state = torch.load(published / "pytorch_model.bin", weights_only=True)
    loaded = load_checkpoint(published, tokenizer=tiny_tokenizer)
    for name, tensor in loaded.model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert loaded.settings == ScannerSettings()
    assert not loaded.published


@pytest.fixture
def neox_vocabulary(tmp_path: Path) -> Path:
    config = Mamba2Config(
        d_model=8, n_layer=1, vocab_size=50277, pad_vocab_size_multiple=16, d_state=4, headdim=8
    )
    folder = tmp_path / "neox"
    save_checkpoint(folder, ScannerModel(config), ScannerSettings(), None)
    edit_config(folder, lambda config: config.pop("spscanner"))
    return folder


def test_a_published_scanner_is_known_by_its_vocabulary(
    neox_vocabulary: Path, tiny_tokenizer: Tokenizer
) -> None:
    loaded = load_checkpoint(neox_vocabulary, tokenizer=tiny_tokenizer)
    assert loaded.published
    assert loaded.settings == ScannerSettings("reference", window_tokens=120_000)


def test_our_settings_win_over_the_vocabulary(neox_vocabulary: Path, tiny_tokenizer: Tokenizer) -> None:
    edit_config(neox_vocabulary, lambda config: config.update(spscanner=ScannerSettings().to_dict()))
    loaded = load_checkpoint(neox_vocabulary, tokenizer=tiny_tokenizer)
    assert not loaded.published
    assert loaded.settings == ScannerSettings()


def test_no_tokenizer(published: Path) -> None:
    with pytest.raises(CheckpointError, match=r"published: no tokenizer\.json there; pass tokenizer="):
        load_checkpoint(published)
    assert outputs(load_model(published)).shape == (40,)


@pytest.mark.parametrize("name", ["two-groups", "long"])
def test_committed_oracles_load(committed_oracles: Path, name: str) -> None:
    folder = committed_oracles / "checkpoints" / name
    model = load_model(folder)
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    assert set(state) == {*model.state_dict(), "lm_head.weight"}


def test_oracle_with_the_published_vocabulary_loads(oracles: Path) -> None:
    folder = oracles / "checkpoints" / "tiny-neox-vocab"
    loaded = load_checkpoint(
        folder, tokenizer=oracles / "tokenizer" / "gpt-neox-20b.json", local_files_only=True
    )
    assert loaded.published
    assert loaded.settings == ScannerSettings("reference", window_tokens=120_000)
    assert loaded.tokenizer.get_vocab_size() == 50277
    assert loaded.model.backbone.embedding.weight.shape == (50288, 16)


# A base language model


@pytest.fixture
def base(folder: Path) -> Path:
    edit_weights(folder, lambda tensors: [tensors.pop(f"binary_head.{part}") for part in ("weight", "bias")])
    return folder


def test_a_base_model_loads_only_for_training(base: Path) -> None:
    with pytest.raises(CheckpointError, match=r"without binary_head\.weight, which loads only for training"):
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


def test_an_existing_head_is_kept_for_training(folder: Path, model: ScannerModel) -> None:
    assert_same_weights(load_model(folder, require_head=False), model)


@pytest.mark.parametrize("require_head", [True, False])
def test_half_a_head(folder: Path, require_head: bool) -> None:
    edit_weights(folder, lambda tensors: tensors.pop("binary_head.bias"))
    with pytest.raises(CheckpointError, match=r"tensor binary_head\.bias is missing"):
        load_model(folder, require_head=require_head)


# Refusals


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda t: t.update({"binary_head.weight": torch.ones(2, 16)}),
            r"binary_head\.weight has shape \[2, 16\]",
        ),
        (
            lambda t: t.update({"binary_head.weight": torch.ones(1, 8)}),
            r"binary_head\.weight has shape \[1, 8\]",
        ),
        (lambda t: t.pop("backbone.layers.1.mixer.D"), r"backbone\.layers\.1\.mixer\.D is missing"),
        (lambda t: t.pop("match_embedding.weight"), r"match_embedding\.weight is missing"),
        (lambda t: t.pop("lexical_prior.weight"), r"lexical_prior\.weight is missing"),
        (lambda t: t.pop("surroundings.weight"), r"surroundings\.weight is missing"),
        (
            lambda t: t.update({"backbone.layers.2.norm.weight": torch.ones(16)}),
            r"layers\.2\.norm\.weight has no place",
        ),
        (
            lambda t: t.update({"backbone.norm_f.weight": torch.full((16,), float("nan"))}),
            "norm_f.weight holds NaN",
        ),
        (
            lambda t: t.update({"backbone.norm_f.weight": torch.ones(16, dtype=torch.int32)}),
            "norm_f.weight is I32",
        ),
    ],
)
def test_tensors_that_do_not_fit(folder: Path, edit: Edit, message: str) -> None:
    edit_weights(folder, edit)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tensor", "off"),
    [
        ("match_embedding.weight", {"match": False}),
        ("lexical_prior.weight", {"prior": False, "surroundings": False}),
        ("surroundings.bias", {"surroundings": False}),
    ],
)
def test_lexical_tensors_only_where_switched_on(folder: Path, tensor: str, off: dict[str, bool]) -> None:
    edit_config(folder, lambda config: config["spscanner"]["lexical"].update(off))
    with pytest.raises(CheckpointError, match=f"tensor {tensor} has no place"):
        load_model(folder)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda c: c["ssm_cfg"].pop("layer"),
            r"config\.json: ssm_cfg\.layer is missing, which means Mamba-1",
        ),
        (lambda c: c.update(attn_layer_idx=[0]), r"config\.json: attn_layer_idx"),
        (lambda c: c.pop("d_model"), r"config\.json: neither d_model"),
        (
            lambda c: c["spscanner"].update(format=2),
            r"config\.json: spscanner\.format is 2, .*newer version needed",
        ),
        (lambda c: c["spscanner"].update(window_tokens="all"), r"config\.json: spscanner\.window_tokens"),
        (lambda c: c.update(spscanner=None), r"config\.json: spscanner is None"),
        (
            lambda c: c.update(vocab_size=300),
            r"config\.json: vocab_size is 300, the tokenizer has ids up to 383",
        ),
        (lambda c: c.update(n_layer=10**9), r"tensor backbone\.layers\.2\.norm\.weight is missing"),
        (lambda c: c.update(d_model=2**40), r"embedding\.weight has shape"),
    ],
)
def test_configurations_that_do_not_fit(folder: Path, edit: Edit, message: str) -> None:
    edit_config(folder, edit)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_are_missing(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_files_that_are_lfs_pointers(folder: Path, name: str) -> None:
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(CheckpointError, match=rf"{name}: a git-LFS pointer"):
        load_checkpoint(folder)


def test_truncated_weights(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-4])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: truncated"):
        load_checkpoint(folder)


# Finding


def test_the_bundled_checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_BUNDLED", folder)
    assert locate(None) == folder
    assert load_checkpoint().source == "default"


def test_the_bundled_checkpoint_by_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_BUNDLED", folder)
    monkeypatch.chdir(tmp_path)
    assert locate("default") == folder
    (tmp_path / "default").mkdir()  # a folder that is called so is meant
    assert locate("default") == Path("default")


def test_the_bundled_checkpoint_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_BUNDLED", tmp_path / "default")
    with pytest.raises(
        CheckpointError, match="the bundled checkpoint is missing; install spscanner-rag again"
    ):
        locate(None)


def test_a_local_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate(str(folder)) == folder
    assert locate(folder) == folder
    monkeypatch.chdir(folder.parent)
    assert locate("ours") == Path("ours")
    monkeypatch.setenv("HOME", str(folder.parent))
    assert locate("~/ours") == folder


@pytest.mark.parametrize("name", ["./absent", "/absent/folder", "a/b/c", Path("absent")])
def test_an_absent_folder(name: str | Path) -> None:
    with pytest.raises(CheckpointError, match=f"{name}: no such folder; expected the folder of a checkpoint"):
        locate(name)


def test_a_file_instead_of_a_folder(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json: a file; expected the folder"):
        locate(folder / "config.json")


@pytest.mark.parametrize("name", ["", 17, b"x"])
def test_no_name(name: Any) -> None:
    with pytest.raises(CheckpointError, match="expected a folder, a Hub id owner/name, or None"):
        locate(name)


def fill_cache(cache: Path, folder: Path) -> Path:
    """Lay a checkpoint down as the Hub client's cache does."""
    root = cache / "models--owner--name"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    (root / "snapshots").mkdir()
    return folder.rename(root / "snapshots" / COMMIT)


def test_a_hub_id_from_the_cache(folder: Path, tmp_path: Path, model: ScannerModel) -> None:
    snapshot = fill_cache(tmp_path / "cache", folder)
    loaded = load_checkpoint(
        "owner/name", cache_dir=tmp_path / "cache", local_files_only=True, token="hf_secret"
    )
    assert_same_weights(loaded.model, model)
    assert (loaded.source, loaded.folder) == ("owner/name", snapshot)
    assert "hf_secret" not in repr(loaded)


def test_a_hub_id_from_the_cache_with_pickled_weights(published: Path, tmp_path: Path) -> None:
    snapshot = fill_cache(tmp_path / "cache", published)
    assert locate("owner/name", cache_dir=tmp_path / "cache", local_files_only=True) == snapshot


def test_a_commit_from_the_cache(folder: Path, tmp_path: Path) -> None:
    snapshot = fill_cache(tmp_path / "cache", folder)
    options: dict[str, Any] = {"cache_dir": tmp_path / "cache", "local_files_only": True}
    assert locate("owner/name", revision=COMMIT, **options) == snapshot
    with pytest.raises(CheckpointError, match="at revision 'v2', and the network is off"):
        locate("owner/name", revision="v2", **options)


def test_pickled_weights_are_fetched_only_if_there_are_no_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def answer(repository: str, **kwargs: Any) -> str:
        asked.append((kwargs["revision"], kwargs["allow_patterns"]))
        return str(found)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)
    found = folder
    locate("owner/name", revision="v1")
    assert [revision for revision, _ in asked] == ["v1"]
    assert "pytorch_model.bin" not in asked[0][1]
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= set(asked[0][1])
    found = tmp_path / COMMIT
    found.mkdir()
    locate("owner/name", revision="v1")
    assert [revision for revision, _ in asked] == ["v1", "v1", COMMIT]
    assert "pytorch_model.bin" in asked[2][1]


def test_a_hub_id_with_the_network_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def off(*args: Any, **kwargs: Any) -> str:
        raise errors.OfflineModeIsEnabled(f"offline, with {kwargs['token']}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", off)
    with pytest.raises(
        CheckpointError, match=r"cannot get owner/name.*not.* in the cache.*pass a local folder"
    ) as e:
        load_checkpoint("owner/name", token="hf_secret")
    assert "hf_secret" not in str(e.value)
    assert "\n" not in str(e.value)


# transformers' layout

TRANSFORMERS = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_heads": 4,
    "head_dim": 16,
    "n_groups": 2,
    "state_size": 8,
    "vocab_size": 101,
}


def save_transformers(folder: Path, kind: str, **keys: Any) -> Any:
    """Save a tiny random model with transformers itself, every tensor of it random."""
    transformers = pytest.importorskip("transformers")
    model = getattr(transformers, kind)(transformers.Mamba2Config(**(TRANSFORMERS | keys))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["Mamba2Model", "Mamba2ForCausalLM"])
@pytest.mark.parametrize(
    "keys", [{}, {"tie_word_embeddings": True}, {"use_bias": True, "use_conv_bias": False}]
)
def test_transformers_layout(tmp_path: Path, kind: str, keys: dict[str, Any]) -> None:
    original = save_transformers(tmp_path, kind, **keys)
    state = getattr(original, "backbone", original).state_dict()
    loaded = load_model(tmp_path, require_head=False)
    assert loaded.config.ngroups == 2
    for name, tensor in loaded.backbone.state_dict().items():
        assert torch.equal(tensor, state[name.replace("embedding.", "embeddings.")]), name


def test_transformers_shards(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    original = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**TRANSFORMERS))
    original.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    loaded = load_model(tmp_path, require_head=False)
    assert torch.equal(loaded.backbone.embedding.weight, original.backbone.embeddings.weight)


def test_transformers_layout_with_tokenizer_and_head(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    save_transformers(tmp_path, "Mamba2Model", vocab_size=384)
    tiny_tokenizer.save(str(tmp_path / "tokenizer.json"))
    edit_weights(
        tmp_path,
        lambda t: t.update({"binary_head.weight": torch.ones(1, 32), "binary_head.bias": torch.ones(1)}),
    )
    loaded = load_checkpoint(tmp_path)
    assert loaded.settings == ScannerSettings()
    assert loaded.model.binary_head is not None
    assert float(loaded.model.binary_head.bias.detach()) == 1


def test_transformers_bfloat16(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    transformers.Mamba2Model(transformers.Mamba2Config(**TRANSFORMERS)).bfloat16().save_pretrained(tmp_path)
    loaded = load_model(tmp_path, dtype=torch.bfloat16, require_head=False)
    assert loaded.backbone.norm_f.weight.dtype == torch.bfloat16
    assert loaded.backbone.layers[0].mixer.A_log.dtype == torch.float32


def test_transformers_head_count(tmp_path: Path) -> None:
    save_transformers(tmp_path, "Mamba2Model")
    edit_config(tmp_path, lambda config: config.update(num_heads=5))
    with pytest.raises(CheckpointError, match=r"config\.json: num_heads \* head_dim is 5 \* 16"):
        load_model(tmp_path, require_head=False)


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
def test_hidden_states_are_those_of_transformers(tmp_path: Path, keys: dict[str, Any]) -> None:
    original = save_transformers(tmp_path, "Mamba2Model", **keys)
    ids = torch.randint(0, TRANSFORMERS["vocab_size"], (2, 150))
    with torch.no_grad():
        expected = original(ids).last_hidden_state
        hidden, _ = load_model(tmp_path, require_head=False)(ids)
    assert float((hidden - expected).abs().max()) < 1e-4
