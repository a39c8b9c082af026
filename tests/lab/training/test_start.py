import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.start import (
    RunFiles,
    check_start,
    inputs_of,
    start_checkpoint,
    train_tokenizer,
)
from spscanner_rag.checkpoint import (
    CheckpointError,
    ScannerSettings,
    load_checkpoint,
    save_checkpoint,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import SOFT_FEATURES, SOFT_START, ScannerModel
from tests.lab.training.conftest import SHAPE

CPU = torch.device("cpu")
LEXICAL = Recipe(
    vocab_size=300,
    reanchor_tokens=32,
    lexical_match=True,
    lexical_prior=True,
    lexical_surroundings=True,
)


SOFT = replace(LEXICAL, lexical_soft=True)


def files(out: Path, base: Path | None = None, config: Path | None = None) -> RunFiles:
    return RunFiles([], [], out, None if base is None else str(base), config)


@pytest.fixture
def shape(tmp_path: Path) -> Path:
    path = tmp_path / "shape.json"
    path.write_text(json.dumps(SHAPE))
    return path


def tiny_model(
    folder: Path, tokenizer: Tokenizer, match: bool = True, head: bool = True
) -> Path:
    """Save a model that has at most the match embedding."""
    config = Mamba2Config(d_model=16, n_layer=1, vocab_size=384, d_state=8, headdim=8)
    model = ScannerModel(config, match_embedding=match, head=head)
    save_checkpoint(folder, model, ScannerSettings(match=match), tokenizer)
    return folder


def headless(folder: Path) -> ScannerModel:
    return load_checkpoint(
        folder, device=CPU, dtype=torch.float32, require_head=False
    ).model


@pytest.fixture
def language_model(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    return tiny_model(tmp_path / "lm", tiny_tokenizer, head=False)


@pytest.fixture
def lesser_scanner(tmp_path: Path, tiny_tokenizer: Tokenizer) -> Path:
    return tiny_model(tmp_path / "base", tiny_tokenizer)


def test_a_language_model_as_base_takes_the_recipes_reading_and_starts_as_it_was(
    tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    folder = tiny_model(tmp_path / "lm", tiny_tokenizer, match=False, head=False)
    start = start_checkpoint(files(tmp_path, folder), LEXICAL, [], CPU)
    assert (
        start.settings.reanchor_tokens,
        start.settings.match,
        start.settings.prior,
    ) == (32, True, True)
    assert start.model.binary_head is not None
    ids = torch.arange(20)[None]
    expected, _ = headless(folder)(ids)
    got, _ = start.model(ids, None, torch.full((1, 20), 5))
    torch.testing.assert_close(got, expected)
    start.model.score(got[0], torch.zeros(20, 4))
    torch.rand(3)  # whatever was drawn before, the seed determines the new weights
    again = start_checkpoint(
        files(tmp_path, folder), LEXICAL, [], CPU
    ).model.state_dict()
    assert all(
        torch.equal(again[name], value)
        for name, value in start.model.state_dict().items()
    )


def test_a_language_model_keeps_its_channel_only_if_the_recipe_wants_one(
    tmp_path: Path, language_model: Path
) -> None:
    own = headless(language_model)
    start = start_checkpoint(files(tmp_path, language_model), SOFT, [], CPU)
    kept = start.model
    assert own.match_embedding is not None
    assert kept.match_embedding is not None
    torch.testing.assert_close(kept.match_embedding.weight, own.match_embedding.weight)
    assert kept.soft_prior is not None  # it begins with a share of the soft score
    assert kept.soft_prior.bias.tolist() == pytest.approx([SOFT_START] + [0] * 11)
    assert start.word_vectors is not None
    plain = start_checkpoint(files(tmp_path, language_model), Recipe(), [], CPU)
    assert (plain.model.match_embedding, plain.settings.match, plain.word_vectors) == (
        None,
        False,
        None,
    )


@pytest.mark.parametrize("base", ["lesser_scanner", "tiny_checkpoint"])
def test_a_scanner_as_base_gains_what_it_lacks_and_starts_as_it_was(
    tmp_path: Path, base: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(base)
    own = load_checkpoint(folder, device=CPU)
    start = start_checkpoint(files(tmp_path, folder), SOFT, [], CPU)
    assert start.settings == replace(
        own.settings, prior=True, surroundings=True, soft=True
    )
    assert start.word_vectors is not None
    ids, features = torch.arange(20)[None], torch.randn(1, 20, SOFT_FEATURES)
    prior = torch.randn(20, start.model.prior_width)
    with torch.no_grad():
        hidden = own.model(ids, None, ids % 7)[0][0]
        expected = own.model.score(hidden, prior[:, :4] if own.settings.prior else None)
        hidden, _ = start.model(ids, None, ids % 7, match_features=features)
        torch.testing.assert_close(start.model.score(hidden[0], prior), expected)
    assert (
        start_checkpoint(files(tmp_path, folder), Recipe(), [], CPU).settings
        == own.settings
    )
    # a base with its own table keeps it, whatever the recipe says
    grown = tmp_path / "grown"
    save_checkpoint(
        grown,
        start.model,
        start.settings,
        start.tokenizer,
        word_vectors=start.word_vectors,
    )
    for recipe in (SOFT, Recipe()):
        again = start_checkpoint(files(tmp_path, grown), recipe, [], CPU)
        assert again.settings.soft
        assert again.word_vectors is not None


def test_least_units_are_of_base_or_recipe_and_the_weight_of_texts_is_of_the_base(
    tmp_path: Path,
    tiny_checkpoint: Path,
    lesser_scanner: Path,
    shape: Path,
    documents: list[Document],
) -> None:
    def of(settings: ScannerSettings) -> tuple[int, float]:
        return settings.least_units, settings.text_weight

    recipe = replace(LEXICAL, lexical_least_units=200, reanchor_tokens=999)
    own = start_checkpoint(files(tmp_path, tiny_checkpoint), recipe, [], CPU)
    assert own.settings.reanchor_tokens == 64
    assert (
        of(own.settings)
        == of(load_checkpoint(tiny_checkpoint, device=CPU).settings)
        == (60, 0.5)
    )
    assert of(
        start_checkpoint(files(tmp_path, lesser_scanner), recipe, [], CPU).settings
    ) == (200, 0.0)
    new = start_checkpoint(
        files(tmp_path / "new", config=shape), recipe, documents, CPU
    )
    assert of(new.settings) == (200, 0.0)


def test_from_nothing_a_vocabulary_is_learnt_once(
    tmp_path: Path, shape: Path, documents: list[Document]
) -> None:
    out = tmp_path / "out"
    first = start_checkpoint(files(out, config=shape), LEXICAL, documents, CPU)
    assert first.tokenizer.get_vocab_size() == 300
    assert first.settings.match
    again = start_checkpoint(files(out, config=shape), LEXICAL, [], CPU)
    assert again.tokenizer.to_str() == first.tokenizer.to_str()
    np.testing.assert_array_equal(
        again.model.backbone.embedding.weight.detach(),
        first.model.backbone.embedding.weight.detach(),
    )
    assert list(out.glob("*.part")) == []


def test_a_start_that_cannot_be_is_refused_before_data_is_read(
    tmp_path: Path, shape: Path, tiny_checkpoint: Path
) -> None:
    check_start(files(tmp_path, config=shape), LEXICAL)
    check_start(files(tmp_path, tiny_checkpoint), LEXICAL)
    for neither_or_both in (files(tmp_path), files(tmp_path, tiny_checkpoint, shape)):
        with pytest.raises(ValueError, match="give one of --base and --config"):
            check_start(neither_or_both, LEXICAL)
    with pytest.raises(CheckpointError, match="no such folder"):
        check_start(files(tmp_path, tmp_path / "nothing"), LEXICAL)
    shape.write_text(json.dumps(SHAPE | {"d_model": 17}))
    with pytest.raises(ValueError, match=r"shape\.json: ssm_cfg\.headdim"):
        check_start(files(tmp_path, config=shape), LEXICAL)


# What a run learns from, by content


@pytest.fixture
def run_files(tmp_path: Path) -> RunFiles:
    for name in ("a.jsonl", "b.jsonl", "dev.jsonl", "shape.json"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    return files_in(tmp_path, "a.jsonl")


def files_in(folder: Path, first: str) -> RunFiles:
    data, out = [folder / first, folder / "b.jsonl"], folder / "out"
    return RunFiles(data, [folder / "dev.jsonl"], out, None, folder / "shape.json")


def changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [option for option, digest in now.items() if before.get(option) != digest]


def test_paths_may_move(run_files: RunFiles, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(tmp_path, tmp_path / "elsewhere"))
    (elsewhere / "a.jsonl").rename(elsewhere / "renamed.jsonl")
    assert not changed(
        inputs_of(run_files), inputs_of(files_in(elsewhere, "renamed.jsonl"))
    )


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("a.jsonl", "--data"),
        ("b.jsonl", "--data"),
        ("dev.jsonl", "--validation"),
        ("shape.json", "--config"),
    ],
)
def test_other_content_is_told_by_option(
    run_files: RunFiles, tmp_path: Path, name: str, option: str
) -> None:
    before = inputs_of(run_files)
    (tmp_path / name).write_text("other", encoding="utf-8")
    assert changed(before, inputs_of(run_files)) == [option]


def test_more_fewer_and_exchanged_files(run_files: RunFiles) -> None:
    before, data = inputs_of(run_files), list(run_files.data)
    for other in (data[:1], data[::-1], [*data, data[0]], []):
        assert changed(before, inputs_of(replace(run_files, data=other))) == ["--data"]


def test_a_base_is_its_files(tiny_checkpoint: Path, tmp_path: Path) -> None:
    def of(folder: Path) -> str:
        return inputs_of(RunFiles([], [], tmp_path, str(folder), None))["--base"]

    recorded = Path(shutil.copytree(tiny_checkpoint, tmp_path / "recorded"))
    (recorded / "model.safetensors").write_bytes(
        b"its digest is in config.json, and loading checks it"
    )
    assert of(recorded) == of(tiny_checkpoint)
    old = Path(shutil.copytree(tiny_checkpoint, tmp_path / "old"))
    config = json.loads((old / "config.json").read_bytes())
    del config["spscanner"]["sha256"]
    (old / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (old / "README.md").write_text("more", encoding="utf-8")
    assert of(shutil.copytree(old, tmp_path / "copy")) == of(old)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        other = Path(shutil.copytree(old, tmp_path / f"other {name}"))
        (other / name).write_bytes((other / name).read_bytes() + b" ")
        assert of(other) != of(old)


TOKENIZER = train_tokenizer(["the cat sat on the mat", "the dog sat"], 270)


@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    assert (
        TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text
    )
    assert (TOKENIZER.get_vocab_size(), len(TOKENIZER.encode(" the").ids)) == (270, 1)
