"""Runs through the command, from files to a checkpoint that scans.

A killed run is resumed.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.loop import LOG_FILE, STATE_FILE
from spscanner_lab.training.model_card import _encoder
from spscanner_lab.training.recipe import read_recipe
from spscanner_lab.training.stages.evidence import Validation, set_aside
from spscanner_lab.training.start import RunFiles
from spscanner_lab.training.training_run import TrainingRun
from spscanner_rag import Scanner
from spscanner_rag.apps.cli import main
from spscanner_rag.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from tests.lab.training.conftest import RECIPE, SHAPE

LEXICAL = "reanchor_tokens = 32\nlexical_match = true\nlexical_prior = true\n"
OTTER = ("Where was the otter?", "An otter came. Then it left. Nobody saw it.")
CPU = torch.device("cpu")


def train(*arguments: object) -> int:
    return main(["train", *map(str, arguments)])


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def logged(out: Path, key: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (out / LOG_FILE).read_text().splitlines()]
    return [record for record in records if key in record]


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass
class Run:
    """The files of a run in a separate folder, and its output."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def arguments(self) -> list[object]:
        config, data, dev = (
            self.folder / name for name in ("shape.json", "train.jsonl", "dev.jsonl")
        )
        return [
            "--config",
            config,
            "--data",
            data,
            "--validation",
            dev,
            "--out",
            self.out,
        ]

    def files(self, out: Path, base: str | None = None) -> RunFiles:
        data, dev = [self.folder / "train.jsonl"], [self.folder / "dev.jsonl"]
        return RunFiles(
            data, dev, out, base, None if base else self.folder / "shape.json"
        )

    def again(self, recipe: str = "") -> int:
        text = (self.folder / "recipe.toml").read_text(encoding="utf-8")
        return train(
            written(self.folder, "again.toml", recipe or text), *self.arguments
        )


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory, corpus_file: Path, validation_file: Path
) -> Run:
    """A finished run, which no test may change."""
    run = Run(tmp_path_factory.mktemp("run"))
    for name, file in (("train.jsonl", corpus_file), ("dev.jsonl", validation_file)):
        shutil.copy(file, run.folder / name)
    written(run.folder, "shape.json", json.dumps(SHAPE))
    recipe = written(run.folder, "recipe.toml", RECIPE + LEXICAL + "keep_best = true\n")
    assert train(recipe, *run.arguments) == 0
    return run


@pytest.fixture
def finished(once: Run, tmp_path: Path) -> Run:
    """A copy of that run."""
    return Run(shutil.copytree(once.folder, tmp_path / "run"))


@pytest.fixture
def shape(tmp_path: Path) -> Path:
    return written(tmp_path, "shape.json", json.dumps(SHAPE))


def test_from_nothing_to_a_scanner(once: Run) -> None:
    scanner = Scanner.from_pretrained(once.out, device="cpu")
    settings = scanner.checkpoint.settings
    assert (settings.reanchor_tokens, settings.match, settings.prior) == (
        32,
        True,
        True,
    )
    assert settings.training["questions_by_source"] == {"roads": 48, "walks": 24}
    assert set(settings.training["validation_recall"]) == {"walks", "macro"}
    assert len(scanner.scan(*OTTER).sentences) == 3
    assert [record["step"] for record in logged(once.out, "validation")] == [2, 4, 4]
    card = (once.out / "README.md").read_text(encoding="utf-8")
    assert "| walks | 24 |" in card
    assert "| macro |" in card
    assert str(once.folder) not in card.replace(str(once.folder / "shape.json"), "")


def test_a_finished_scanner_is_a_base_that_keeps_its_way_of_reading_and_its_encoder(
    once: Run, tmp_path: Path, corpus_file: Path, encoder_file: EncoderFile
) -> None:
    plain, base, out = (
        written(tmp_path, "plain.toml", RECIPE),
        tmp_path / "base",
        tmp_path / "tuned",
    )
    own = load_checkpoint(once.out)
    settings = replace(own.settings, meaning=MeaningWeights(sentence=10.0))
    save_checkpoint(base, own.model, settings, own.tokenizer, encoder=encoder_file)
    assert train(plain, "--base", base, "--data", corpus_file, "--out", out) == 0
    before, after = load_checkpoint(base), load_checkpoint(out)
    assert replace(after.settings, training=settings.training) == settings
    assert after.settings.training["before"] == settings.training
    assert before.encoder_file is not None
    assert after.encoder_file is not None
    assert before.encoder_file.weights.keys() == after.encoder_file.weights.keys()
    assert "Not measured" in (out / "README.md").read_text(encoding="utf-8")


def test_from_nothing_to_a_soft_scanner(
    tmp_path: Path, shape: Path, corpus_file: Path
) -> None:
    soft = "lexical_surroundings = true\nlexical_soft = true\n"
    first = written(tmp_path, "soft.toml", RECIPE + LEXICAL + soft)
    assert (
        train(
            first, "--config", shape, "--data", corpus_file, "--out", tmp_path / "soft"
        )
        == 0
    )
    made = load_checkpoint(tmp_path / "soft")
    assert made.word_vectors is not None
    model = made.model
    assert model.soft_match is not None
    assert model.soft_prior is not None
    assert model.soft_match.weight.abs().max() > 0, "trained"
    assert model.soft_prior.weight.abs().max() > 0, "trained"
    card = (tmp_path / "soft" / "README.md").read_text(encoding="utf-8")
    assert f"| Word vectors | {made.word_vectors} |" in card


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        ("DATA", "", "either a base checkpoint"),
        ("NEW --data FOLDER/no.jsonl", "", "no such file"),
        (
            "NEW --data FOLDER/broken.jsonl",
            "",
            "line 1: expected a string under 'text'",
        ),
        ("NEW DATA --validation CORPUS", "", "every training document shares text"),
        (
            "NEW --data FOLDER/walks.txt",
            "",
            "expected questions, which `spscanner synthesize` makes",
        ),
        ("NEW", "", "expected --data with questions"),
        (
            "NEW DATA",
            "keep_best = true\n",
            "keep_best is true, but there are no documents to validate on",
        ),
        (
            "NEW DATA --validation FOLDER/mean.jsonl",
            "",
            "validation: got the source 'macro', the name of a mean",
        ),
    ],
)
def test_bad_input_is_one_line_and_trains_nothing(
    given: str,
    more: str,
    message: str,
    tmp_path: Path,
    shape: Path,
    corpus_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = corpus_file.read_text(encoding="utf-8").splitlines()[0]
    written(tmp_path, "walks.txt", "Captain Brown signed the treaty.")
    written(tmp_path, "broken.jsonl", '{"doc_id": "a"}\n')
    written(
        tmp_path, "mean.jsonl", line.replace('"source": "walks"', '"source": "macro"')
    )
    places = {
        "NEW": f"--config {shape}",
        "DATA": f"--data {corpus_file}",
        "CORPUS": corpus_file,
    }
    for name, place in (places | {"FOLDER": tmp_path}).items():
        given = given.replace(name, str(place))
    recipe, out = written(tmp_path, "recipe.toml", RECIPE + more), tmp_path / "out"
    assert train(recipe, *given.split(), "--out", out, "--no-progress") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (out / "model.safetensors").exists()


def test_a_run_ends_with_the_calibration_that_its_recipe_wants(
    finished: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(finished.out)
    biases = []
    for number in (0, 3):  # the second run only calibrates, since the first has trained
        assert finished.again(RECIPE + f"calibration_questions = {number}\n") == 0
        assert ("calibrated: logits times" in capsys.readouterr().err) == bool(number)
        head = load_checkpoint(finished.out).model.binary_head
        assert head is not None
        biases.append(head.bias.item())
    assert abs(biases[1] - biases[0]) > 0.1


def test_a_tenth_of_the_named_sources_is_held_out(documents: list[Document]) -> None:
    held_out: list[Document] = []
    training = list(set_aside(documents, ["roads"], held_out))
    assert (
        held_out
        == [d for d in documents if d.source == "roads" and is_held_out(d.doc_id)]
        != []
    )
    assert training == [document for document in documents if document not in held_out]
    assert list(set_aside(documents, [], [])) == documents


def test_documents_that_share_text_with_the_validation_are_left_out(
    tmp_path: Path, shape: Path, corpus_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the first days of "walks" and "roads" have the same ten sentences, and one of them
    # is validated on
    line = json.loads(corpus_file.read_text(encoding="utf-8").splitlines()[0])
    line["text"] = f"Somebody else wrote what follows here. {line['text'].upper()}"
    line["questions"] = line["questions"][:1]
    dev = written(tmp_path, "dev.jsonl", json.dumps(line) + "\n")
    recipe, out = written(tmp_path, "recipe.toml", RECIPE), tmp_path / "out"
    given = [
        "--config",
        shape,
        "--data",
        corpus_file,
        "--validation",
        dev,
        "--out",
        out,
    ]
    assert train(recipe, *given) == 0
    assert "2 documents are not trained on" in capsys.readouterr().err
    training = load_checkpoint(out).settings.training
    assert (training["questions_by_source"], training["left_out"]) == (
        {"roads": 44, "walks": 20},
        2,
    )
    assert "2 documents that share text" in (out / "README.md").read_text(
        encoding="utf-8"
    )


def watched(
    run: TrainingRun, values: Callable[[int], float], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, torch.Tensor]]:
    """Train with scripted validations.

    Return the step and embedding of each, and of the final one last.
    """
    seen: list[tuple[int, torch.Tensor]] = []

    def validate(checkpoint: Checkpoint, final: bool) -> Validation:
        value = values(run.trainer.step)
        seen.append(
            (
                run.trainer.step,
                checkpoint.model.backbone.embedding.weight.detach().clone(),
            )
        )
        return Validation(value, {}, ())

    monkeypatch.setattr(run.stage, "validate", validate)
    run.train(lambda report: None, lambda step, validation: None)
    return seen


def test_the_best_weights_are_saved_and_survive_a_kill(
    once: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = replace(
        read_recipe(once.folder / "recipe.toml"), steps=6, dtype="float32", save_every=1
    )
    values = {2: 0.3, 4: 0.9, 6: 0.5}  # at step 4 the weights are the best

    def run(
        name: str, found: dict[int, float] = values
    ) -> list[tuple[int, torch.Tensor]]:
        own = TrainingRun(once.files(tmp_path / name), numbers, CPU)
        return watched(own, found.__getitem__, monkeypatch)

    seen = run("whole")
    assert [step for step, _ in seen] == [2, 4, 6, 6]
    saved = load_checkpoint(tmp_path / "whole")
    assert saved.settings.training["best_step"] == 4
    assert "6, weights of step 4" in (tmp_path / "whole" / "README.md").read_text(
        encoding="utf-8"
    )
    embedding = saved.model.backbone.embedding.weight
    torch.testing.assert_close(embedding, seen[1][1].bfloat16().float(), rtol=0, atol=0)
    assert not torch.equal(seen[1][1], seen[2][1])
    with pytest.raises(KeyError):
        run("killed", {2: 0.3})  # the state of step 4 is saved, but not its validation
    assert [step for step, _ in run("killed")] == [4, 6, 6]
    resumed = load_checkpoint(tmp_path / "killed").model.backbone.embedding.weight
    torch.testing.assert_close(resumed, embedding)
    assert [step for step, _ in run("killed")] == [6, 6]  # nothing is left to train


def test_a_base_that_training_makes_worse_is_kept(
    once: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = once.files(tmp_path / "out", str(once.out))
    run = TrainingRun(files, read_recipe(once.folder / "recipe.toml"), CPU)
    assert [step for step, _ in watched(run, lambda step: -step, monkeypatch)] == [
        0,
        2,
        4,
        4,
    ]
    tuned, before = load_checkpoint(files.out), load_checkpoint(once.out)
    assert tuned.settings.training["best_step"] == 0
    assert "4, weights of step 0" in (files.out / "README.md").read_text(
        encoding="utf-8"
    )
    torch.testing.assert_close(
        tuned.model.state_dict(), before.model.state_dict(), rtol=0, atol=0
    )


def test_a_base_whose_scores_are_low_is_trained_as_if_they_were_not(
    once: Run, tmp_path: Path, corpus_file: Path
) -> None:
    plain, low = (
        written(tmp_path, "recipe.toml", RECIPE + 'dtype = "float32"\n'),
        tmp_path / "low",
    )
    lowered = load_checkpoint(once.out)
    assert lowered.model.binary_head is not None
    with torch.no_grad():
        lowered.model.binary_head.bias -= (
            4.0  # like a calibration, which changes no rank
        )
    save_checkpoint(low, lowered.model, lowered.settings, lowered.tokenizer)
    tuned = {}
    for start in (once.out, low):
        out = tmp_path / f"tuned-{start.name}"
        assert train(plain, "--base", start, "--data", corpus_file, "--out", out) == 0
        head = load_checkpoint(out).model.binary_head
        assert head is not None
        tuned[start] = (
            [record["loss"] for record in logged(out, "loss")],
            head.bias.item(),
        )
    assert tuned[low][0] == pytest.approx(tuned[once.out][0], abs=1e-4)
    # and they stay low
    assert tuned[low][1] == pytest.approx(tuned[once.out][1] - 4.0, abs=1e-3)


@pytest.mark.parametrize(
    ("what", "name", "before", "after"),
    [
        ("--data", "train.jsonl", b"badger", b"dragon"),
        ("tokenizer", "out/tokenizer.json", b'"!":0,"\\"":1', b'"!":1,"\\"":0'),
    ],
)
def test_a_run_resumes_only_with_its_inputs(
    what: str,
    name: str,
    before: bytes,
    after: bytes,
    finished: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The copy lies elsewhere, since paths may change.

    The other inputs are tested with `inputs_of`.
    """
    changed = finished.folder / name
    assert before in changed.read_bytes()
    changed.write_bytes(changed.read_bytes().replace(before, after, 1))
    saved = content(finished.out)
    assert finished.again() == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert (
        f"{STATE_FILE} is the state of another run (inputs: {what} has other content"
        in error
    )
    assert "give the same again to resume it, or another --out to start again" in error
    assert content(finished.out) == saved


def test_a_card_tells_how_its_encoder_was_trained() -> None:
    record = {
        "started_from": "all-MiniLM-L6-v2",
        "steps": 1200,
        "documents_by_source": {"contracts": 40, "stories": 9},
        "cross_steps": 300,
    }
    told = _encoder(record)
    assert told == (
        "all-MiniLM-L6-v2, 1,200 more steps on documents of contracts 40, stories 9;"
        " a cross-reader, 300 steps from there"
    )
    assert "cross-reader" not in _encoder(record | {"cross_steps": 0})
