"""Whole runs through the command, from files to a checkpoint that scans."""

import json
from pathlib import Path

import pytest

from spscanner_rag import Scanner
from spscanner_rag.cli import main
from spscanner_rag.evaluation.data import Document
from spscanner_rag.training.run import refuse_shared_documents, split_held_out

RECIPE = """
steps = 4
sequence_tokens = [128]
sequences_per_step = 2
learning_rate = 1e-3
vocab_size = 300
validate_every = 2
validation_questions = 2
final_validation_questions = 4
save_every = 2
"""
SHAPE = {"d_model": 16, "n_layer": 1, "ssm_cfg": {"layer": "Mamba2", "d_state": 8, "headdim": 8}}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(
        RECIPE + "reanchor_tokens = 32\nlexical_match = true\nlexical_prior = true\n", encoding="utf-8"
    )
    return path


@pytest.fixture
def shape(tmp_path: Path) -> Path:
    path = tmp_path / "shape.json"
    path.write_text(json.dumps(SHAPE), encoding="utf-8")
    return path


def train(*arguments: object) -> int:
    return main(["train", *map(str, arguments)])


def test_from_nothing_to_a_scanner(
    tmp_path: Path,
    recipe: Path,
    shape: Path,
    corpus_file: Path,
    validation_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert (
        train(recipe, "--config", shape, "--data", corpus_file, "--validation", validation_file, "--out", out)
        == 0
    )
    assert "recall" in capsys.readouterr().err
    scanner = Scanner.from_pretrained(out, device="cpu")
    settings = scanner.checkpoint.settings
    assert (settings.reanchor_tokens, settings.match, settings.prior) == (32, True, True)
    assert settings.training["questions_by_source"] == {"roads": 48, "walks": 24}
    assert set(settings.training["validation_recall"]) == {"walks", "macro"}
    assert (
        len(scanner.scan("Where was the otter?", "An otter came. Then it left. Nobody saw it.").sentences)
        == 3
    )
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "| walks | 24 |" in card
    assert "| macro |" in card
    assert str(tmp_path) not in card.replace(str(shape), "")

    # The finished folder is a base to fine-tune; the base keeps its way of reading.
    plain = tmp_path / "plain.toml"
    plain.write_text(RECIPE, encoding="utf-8")
    tuned = tmp_path / "tuned"
    assert train(plain, "--base", out, "--data", corpus_file, "--out", tuned) == 0
    settings = Scanner.from_pretrained(tuned, device="cpu").checkpoint.settings
    assert (settings.reanchor_tokens, settings.match, settings.prior) == (32, True, True)
    assert "Not measured" in (tuned / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", ["both", "neither", "missing", "broken data", "broken shape", "shared"])
def test_bad_input_is_one_line_and_trains_nothing(
    case: str,
    tmp_path: Path,
    recipe: Path,
    shape: Path,
    corpus_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"doc_id": "a"}\n', encoding="utf-8")
    odd_shape = tmp_path / "odd.json"
    odd_shape.write_text(json.dumps(SHAPE | {"d_model": 17}), encoding="utf-8")
    arguments: dict[str, tuple[list[object], str]] = {
        "both": (["--config", shape, "--base", tmp_path, "--data", corpus_file], "either a base checkpoint"),
        "neither": (["--data", corpus_file], "either a base checkpoint"),
        "missing": (["--config", shape, "--data", tmp_path / "no.jsonl"], "no such file"),
        "broken data": (["--config", shape, "--data", broken], "line 1: expected a string under 'text'"),
        "broken shape": (["--config", odd_shape, "--data", corpus_file], "headdim"),
        "shared": (
            ["--config", shape, "--data", corpus_file, "--validation", corpus_file],
            "in the validation files",
        ),
    }
    given, message = arguments[case]
    assert train(recipe, *given, "--out", out) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (out / "model.safetensors").exists()


def test_a_tenth_of_the_named_sources_is_held_out(documents: list[Document]) -> None:
    training, held_out = split_held_out(documents, ["walks"])
    assert len(training) + len(held_out) == len(documents)
    assert {document.source for document in held_out} <= {"walks"}
    assert split_held_out(documents, []) == (documents, [])
    with pytest.raises(ValueError, match="take it out of one"):
        refuse_shared_documents(documents, documents[:1])
