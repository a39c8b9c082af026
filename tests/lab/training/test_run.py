"""Whole runs through the command, from files to a checkpoint that scans."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.apps.cli import main
from spscanner_rag.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from spscanner_rag.checkpoint.file_access import write_word_vectors
from spscanner_rag.lab.evidence.questions import Document, read_documents
from spscanner_rag.lab.evidence.sampling import is_held_out
from spscanner_rag.lab.training.loop import LOG_FILE
from spscanner_rag.lab.training.recipe import read_recipe
from spscanner_rag.lab.training.stages.evidence import Validation, set_aside
from spscanner_rag.lab.training.start import RunFiles
from spscanner_rag.lab.training.training_run import SNAPSHOTS, TrainingRun
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.scan.devices import choose
from tests.lab.training.conftest import RECIPE, SHAPE


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


def test_from_word_vectors_over_a_language_model_to_a_soft_scanner(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path
) -> None:
    words = ("badger", "heron", "otter", "crossed", "road", "walk")
    random = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    write_word_vectors(tmp_path / "table", WordVectors.of_vectors(words, random, "a model (MIT)"))
    first, second = tmp_path / "language.toml", tmp_path / "soft.toml"
    first.write_text(RECIPE + 'stage = "language-model"\nembedding_start = true\n', encoding="utf-8")
    more = recipe.read_text(encoding="utf-8") + "lexical_surroundings = true\nlexical_soft = true\n"
    second.write_text(more, encoding="utf-8")
    shared = ("--data", corpus_file, "--word-vectors", tmp_path / "table")
    assert train(first, "--config", shape, *shared, "--out", tmp_path / "lm") == 0
    assert load_checkpoint(tmp_path / "lm", require_head=False).word_vectors is None
    assert train(second, "--base", tmp_path / "lm", *shared, "--out", tmp_path / "soft") == 0
    scanner = Scanner.from_pretrained(tmp_path / "soft", device="cpu")
    assert scanner.checkpoint.word_vectors is not None
    assert scanner.checkpoint.word_vectors.words == words
    model = scanner.checkpoint.model
    assert model.soft_match is not None
    assert model.soft_prior is not None
    assert model.soft_match.weight.abs().max() > 0, "trained"
    assert model.soft_prior.weight.abs().max() > 0, "trained"
    assert len(scanner.scan("Where was the otter?", "An otter came. A badger crossed.").sentences) == 2
    card = (tmp_path / "soft" / "README.md").read_text(encoding="utf-8")
    assert "| Word vectors | 6 words of 8 dimensions, made with a model (MIT) |" in card
    # as a base it brings its own table
    assert train(second, "--base", tmp_path / "soft", "--data", corpus_file, "--out", tmp_path / "more") == 0
    assert load_checkpoint(tmp_path / "more").word_vectors is not None


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
            "every training document shares text",
        ),
    }
    given, message = arguments[case]
    assert train(recipe, *given, "--out", out) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (out / "model.safetensors").exists()


def test_a_run_ends_with_the_calibration_that_its_recipe_wants(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    biases = []
    for number in (0, 3):
        recipe.write_text(RECIPE + f"calibration_questions = {number}\n", encoding="utf-8")
        out = tmp_path / f"out-{number}"
        assert train(recipe, "--config", shape, "--data", corpus_file, "--out", out) == 0
        head = load_checkpoint(out).model.binary_head
        assert head is not None
        biases.append(head.bias.item())
        said = "calibrated: " in capsys.readouterr().err
        assert said == bool(number)
    assert abs(biases[1] - biases[0]) > 0.1


def test_a_tenth_of_the_named_sources_is_held_out(documents: list[Document]) -> None:
    held_out: list[Document] = []
    training = list(set_aside(documents, ["roads"], held_out))
    assert held_out == [d for d in documents if d.source == "roads" and is_held_out(d.doc_id)] != []
    assert training == [document for document in documents if document not in held_out]
    assert list(set_aside(documents, [], [])) == documents


def test_documents_that_share_text_with_the_validation_are_left_out(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the first day of "walks" and of "roads" have the same ten sentences, one of which is to be validated on
    line = json.loads(corpus_file.read_text(encoding="utf-8").splitlines()[0])
    line["text"] = f"Somebody else wrote what follows here. {line['text'].upper()}"
    line["questions"] = line["questions"][:1]
    validation = tmp_path / "dev.jsonl"
    validation.write_text(json.dumps(line) + "\n", encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["--config", shape, "--data", corpus_file, "--validation", validation, "--out", out]
    assert train(recipe, *arguments) == 0
    assert "2 documents are not trained on" in capsys.readouterr().err
    training = Scanner.from_pretrained(out, device="cpu").checkpoint.settings.training
    assert (training["questions_by_source"], training["left_out"]) == ({"roads": 44, "walks": 20}, 2)
    assert "2 documents that share text" in (out / "README.md").read_text(encoding="utf-8")


LANGUAGE_MODEL = """
stage = "language-model"
steps = 4
sequence_tokens = [64]
sequences_per_step = 2
learning_rate = 1e-2
vocab_size = 300
validate_every = 2
validation_tokens = 300
save_every = 2
"""


@pytest.fixture
def plain_text(tmp_path: Path) -> Path:
    path = tmp_path / "walks.txt.gz"
    story = (
        "In {0} Captain Brown signed the treaty of Oban with the council, and it rained in Oban all day. "
        * 12
    )
    path.write_bytes(
        gzip.compress("\n\x1e\n".join(story.format(year) for year in range(1900, 1906)).encode())
    )
    return path


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def logged(out: Path, key: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (out / LOG_FILE).read_text().splitlines()]
    return [record for record in records if key in record]


def test_from_plain_text_to_a_scanner_in_three_stages(
    tmp_path: Path,
    shape: Path,
    plain_text: Path,
    corpus_file: Path,
    validation_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    language_model, taught, tuned = tmp_path / "lm", tmp_path / "taught", tmp_path / "tuned"
    lm_recipe = written(tmp_path, "lm.toml", LANGUAGE_MODEL)
    data = ["--data", plain_text, "--data", corpus_file]
    started = ["--config", shape, "--validation", validation_file]
    assert train(lm_recipe, *started, *data, "--out", language_model) == 0
    shown = capsys.readouterr().err
    assert "tokenized walks.txt.gz, 1 of 2 files" in shown
    assert "nats a token" in shown
    validations = logged(language_model, "validation")
    assert [record["step"] for record in validations] == [2, 4]
    assert set(validations[0]["validation"]) == {f"{validation_file.parent.name}/dev", "all"}
    card = (language_model / "README.md").read_text(encoding="utf-8")
    assert "language model to train a scanner from" in card
    assert "| walks |" in card
    assert "perplexity" in card

    switched_on = "reanchor_tokens = 32\nlexical_match = true\nlexical_prior = true\n"
    pseudo = written(tmp_path, "pseudo.toml", RECIPE + switched_on + "unanswerable_share = 0.2\n")
    assert train(pseudo, "--base", language_model, "--text", plain_text, "--out", taught) == 0
    settings = Scanner.from_pretrained(taught, device="cpu").checkpoint.settings
    assert (settings.reanchor_tokens, settings.match, settings.prior) == (32, True, True)
    assert set(settings.training["questions_by_source"]) == {"walks"}
    assert settings.training["started_from"] == str(language_model)

    evidence = written(tmp_path, "evidence.toml", RECIPE)
    arguments = ["--base", taught, "--data", corpus_file, "--text", plain_text, "--out", tuned]
    assert train(evidence, *arguments) == 0
    settings = Scanner.from_pretrained(tuned, device="cpu").checkpoint.settings
    assert settings.match
    assert set(settings.training["questions_by_source"]) == {"walks", "roads"}


def test_the_best_weights_are_saved_and_survive_a_kill(
    tmp_path: Path, shape: Path, corpus_file: Path, validation_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = replace(
        read_recipe(written(tmp_path, "recipe.toml", RECIPE)),
        steps=6,
        keep_best=True,
        dtype="float32",
        save_every=1,
    )
    values = {2: 0.3, 4: 0.9, 6: 0.5}  # at step 4 the weights are the best
    validated: list[int] = []
    weights: dict[int, torch.Tensor] = {}

    def run(name: str, kill_at: int | None = None) -> Path:
        files = RunFiles([corpus_file], [validation_file], tmp_path / name, None, shape, tmp_path / "teacher")
        current = TrainingRun(files, numbers, torch.device("cpu"))

        def validate(checkpoint: Checkpoint, final: bool) -> Validation:
            step = current.trainer.step
            if final:
                return Validation(0.0, {"macro": dict.fromkeys(("1", "5", "10", "50"), 0.0)}, ())
            if step == kill_at:
                raise KeyboardInterrupt
            validated.append(step)
            weights[step] = checkpoint.model.backbone.embedding.weight.detach().clone()
            return Validation(values[step], {}, ())

        monkeypatch.setattr(current.stage, "validate", validate)
        current.train(lambda report: None, lambda step, validation: None)
        return files.out

    whole = run("whole")
    assert validated == [2, 4, 6]
    saved = load_checkpoint(whole)
    assert saved.settings.training["best_step"] == 4
    assert "6, weights of step 4" in (whole / "README.md").read_text(encoding="utf-8")
    torch.testing.assert_close(
        saved.model.backbone.embedding.weight, weights[4].bfloat16().float(), rtol=0, atol=0
    )
    assert not torch.equal(weights[4], weights[6])
    validated.clear()
    with pytest.raises(KeyboardInterrupt):
        run("killed", kill_at=4)  # the state of step 4 is saved, its validation is not
    resumed = load_checkpoint(run("killed"))
    assert validated == [2, 4, 6]
    torch.testing.assert_close(resumed.model.backbone.embedding.weight, saved.model.backbone.embedding.weight)
    validated.clear()
    run("killed")  # a finished run has nothing left to do
    assert validated == []


def test_snapshots_are_scanners_and_a_run_that_has_them_can_be_lengthened(
    tmp_path: Path, recipe: Path, shape: Path, corpus_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, text = tmp_path / "out", recipe.read_text(encoding="utf-8")
    given = ["--config", shape, "--data", corpus_file, "--out", out]
    longer = written(tmp_path, "longer.toml", text.replace("steps = 4", "steps = 6") + "snapshot_every = 3\n")
    assert train(recipe, *given) == 0
    assert not (out / SNAPSHOTS).exists()
    assert train(longer, *given) == 0
    assert [folder.name for folder in (out / SNAPSHOTS).iterdir()] == ["step-6"]
    snapshot = Scanner.from_pretrained(out / SNAPSHOTS / "step-6", device="cpu")
    assert snapshot.checkpoint.settings.training["steps"] == 6
    assert "Not measured" in (out / SNAPSHOTS / "step-6" / "README.md").read_text(encoding="utf-8")
    text_read = "An otter came. Then it left. Nobody saw it."
    np.testing.assert_array_equal(
        snapshot.scan("Where was the otter?", text_read).logits,
        Scanner.from_pretrained(out, device="cpu").scan("Where was the otter?", text_read).logits,
    )
    capsys.readouterr()
    other = written(tmp_path, "other.toml", text.replace("1e-3", "2e-3"))
    assert train(other, *given) == 2
    assert "learning_rate was 0.001 and is now 0.002" in capsys.readouterr().err


def test_a_base_that_training_makes_worse_is_kept(
    tmp_path: Path, shape: Path, corpus_file: Path, validation_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = written(tmp_path, "recipe.toml", RECIPE)
    base = tmp_path / "base"
    assert train(plain, "--config", shape, "--data", corpus_file, "--out", base) == 0
    files = RunFiles(
        [corpus_file], [validation_file], tmp_path / "out", str(base), None, tmp_path / "teacher"
    )
    run = TrainingRun(files, replace(read_recipe(plain), keep_best=True), torch.device("cpu"))
    validated: list[int] = []

    def validate(checkpoint: Checkpoint, final: bool) -> Validation:
        validated.append(run.trainer.step)
        return Validation(-run.trainer.step, {}, ())

    monkeypatch.setattr(run.stage, "validate", validate)
    run.train(lambda report: None, lambda step, validation: None)
    assert validated == [0, 2, 4, 4]
    tuned, before = load_checkpoint(files.out), load_checkpoint(base)
    assert tuned.settings.training["best_step"] == 0
    assert "4, weights of step 0" in (files.out / "README.md").read_text(encoding="utf-8")
    torch.testing.assert_close(tuned.model.state_dict(), before.model.state_dict(), rtol=0, atol=0)


def test_a_base_whose_scores_are_low_is_trained_as_if_they_were_not(
    tmp_path: Path, shape: Path, corpus_file: Path
) -> None:
    plain = written(tmp_path, "recipe.toml", RECIPE + 'dtype = "float32"\n')
    base, low = tmp_path / "base", tmp_path / "low"
    assert train(plain, "--config", shape, "--data", corpus_file, "--out", base) == 0
    lowered = load_checkpoint(base)
    assert lowered.model.binary_head is not None
    with torch.no_grad():
        lowered.model.binary_head.bias -= 4.0  # as a calibration does: no rank changes
    save_checkpoint(low, lowered.model, lowered.settings, lowered.tokenizer)
    tuned = {}
    for start in (base, low):
        out = tmp_path / f"tuned-{start.name}"
        assert train(plain, "--base", start, "--data", corpus_file, "--out", out) == 0
        head = load_checkpoint(out).model.binary_head
        assert head is not None
        tuned[start] = ([record["loss"] for record in logged(out, "loss")], head.bias.item())
    assert tuned[low][0] == pytest.approx(tuned[base][0], abs=1e-4)
    assert tuned[low][1] == pytest.approx(tuned[base][1] - 4.0, abs=1e-3)  # and they stay low


@pytest.mark.parametrize(
    "case",
    [
        "text as data",
        "data for lm",
        "text for lm",
        "teacher for lm",
        "nothing",
        "nothing for lm",
        "best",
        "best lm",
    ],
)
def test_what_a_stage_cannot_use_is_one_line(
    case: str,
    tmp_path: Path,
    shape: Path,
    corpus_file: Path,
    plain_text: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.pdf").touch()
    lm = written(tmp_path, "lm.toml", LANGUAGE_MODEL)
    evidence = written(tmp_path, "evidence.toml", RECIPE)
    best = written(tmp_path, "best.toml", RECIPE + "keep_best = true")
    best_lm = written(
        tmp_path, "best-lm.toml", LANGUAGE_MODEL + 'keep_best = true\nheld_out_sources = ["rivers"]'
    )
    arguments: dict[str, tuple[list[object], str]] = {
        "text as data": ([evidence, "--data", plain_text], "give it as --text"),
        "data for lm": ([lm, "--data", tmp_path / "a.pdf"], "expected a file that ends in .txt or"),
        "text for lm": ([lm, "--data", plain_text, "--text", plain_text], "got --text, which the stage"),
        "teacher for lm": (
            [lm, "--data", plain_text, "--teacher", "minilm"],
            "got a teacher, which the stage",
        ),
        "nothing": ([evidence], "expected --data with questions or --text"),
        "nothing for lm": ([lm], "expected --data with plain text"),
        "best": ([best, "--data", corpus_file], "keep_best is true, but there is nothing to choose by"),
        "best lm": ([best_lm, "--data", plain_text], "held_out_sources that the data has"),
    }
    given, message = arguments[case]
    assert train(*given, "--config", shape, "--out", tmp_path / "out", "--no-progress") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_held_out_documents_are_no_part_of_a_language_model(
    tmp_path: Path, shape: Path, corpus_file: Path
) -> None:
    """Nor is a source that is to be held out but is not there anything to stumble over."""
    roads = [line for line in corpus_file.read_text().splitlines() if '"source": "roads"' in line]
    corpus_file = written(tmp_path, "roads.jsonl", "\n".join(roads))
    documents = list(read_documents([corpus_file]))
    recipe = written(tmp_path, "lm.toml", LANGUAGE_MODEL + 'held_out_sources = ["roads", "rivers"]\n')
    out = tmp_path / "out"
    assert train(recipe, "--config", shape, "--data", corpus_file, "--out", out) == 0
    tokens = load_checkpoint(out, require_head=False).settings.training["tokens_by_source"]
    kept = [document for document in documents if not is_held_out(document.doc_id)]
    tokenizer = load_checkpoint(out, require_head=False).tokenizer
    assert sum(tokens.values()) == sum(len(tokenizer.encode(d.text + "\x1e").ids) for d in kept)
    assert len(kept) < len(documents)
    assert logged(out, "validation")[-1]["validation"]["all"]["nats"] > 0


def test_arithmetic_is_chosen_by_the_device_if_that_is_wanted(
    tmp_path: Path, shape: Path, corpus_file: Path
) -> None:
    recipe = replace(read_recipe(written(tmp_path, "recipe.toml", RECIPE)), dtype="auto")
    files = RunFiles([corpus_file], [], tmp_path / "out", None, shape, tmp_path / "teacher")
    run = TrainingRun(files, recipe, torch.device("cpu"))
    assert run.recipe.dtype == str(choose("cpu").dtype).removeprefix("torch.")
