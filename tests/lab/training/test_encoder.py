"""Training an encoder, weighing its cosines, and putting it into a checkpoint."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.checkpoint.encoder_file import EncoderFile, find_encoder, read_encoder
from spscanner_rag.checkpoint.file_access import ENCODER
from spscanner_rag.encoder.meaning import MeaningWeights
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import is_held_out
from spscanner_rag.lab.training import encoder
from spscanner_rag.lab.training.encoder import (
    EncoderTraining,
    Fitted,
    Source,
    Stretch,
    fitted_weights,
    put_into_checkpoint,
    read_sources,
)

SENTENCES = (
    "The keeper wrote the date in a book. ",
    "He signed the treaty. ",
    "It rained. ",
    "The bell rang. ",
)
QUESTIONS = ("who wrote the date?", "who signed the treaty?", "what rang?")
ANSWERS = (0, 1, 3)


def document(number: int, source: str = "letters") -> Document:
    """A document of four sentences in an order of its own, of which three questions ask one each."""
    order = random.Random(number).sample(range(4), 4)
    text, spans = "", {}
    for place in order:
        spans[place] = (len(text), len(text) + len(SENTENCES[place].strip()))
        text += SENTENCES[place]
    questions = [
        Question(f"{number}-{place}", question, (spans[place],))
        for question, place in zip(QUESTIONS, ANSWERS, strict=True)
    ]
    return Document(f"d{number}", source, "", text, (*questions, Question("open", "who left?", (), False)))


DOCUMENTS = [document(number) for number in range(40)]


@pytest.fixture(scope="module")
def sources(encoder_file: EncoderFile) -> dict[str, Source]:
    """The documents, tokenized."""
    return read_sources(DOCUMENTS, encoder_file.loaded("", "cpu", torch.float32), 40)[0]


def test_a_tenth_is_set_aside(encoder_file: EncoderFile, sources: dict[str, Source]) -> None:
    tokens = encoder_file.loaded("", "cpu", torch.float32)
    _, aside = read_sources(DOCUMENTS, tokens, 40)
    held_out = [one.doc_id for one in DOCUMENTS if is_held_out(one.doc_id)]
    assert len(aside) == 4  # a tenth of the documents asked for
    assert {one.doc_id for one in aside} < set(held_out)
    assert len(sources["letters"].documents) == 40 - len(held_out)
    with pytest.raises(ValueError, match="evidence"):
        read_sources([], tokens, 40)


def test_a_stretch_holds_what_its_questions_ask(sources: dict[str, Source]) -> None:
    for seed in range(20):
        stretch = Stretch.drawn(sources["letters"], random.Random(seed))
        assert stretch.questions
        for question in stretch.questions:
            assert (question.relevant < len(stretch.sentences)).all()
        assert len(stretch.questions[0].relevant)


def test_training_lowers_the_loss_and_goes_on_where_it_ended(
    encoder_file: EncoderFile, sources: dict[str, Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "LEARNING_RATE", 3e-3)
    monkeypatch.setattr(encoder, "WARMUP_STEPS", 1)
    whole = EncoderTraining(encoder_file, sources, 24, seed=3)
    whole.run(tmp_path / "whole", lambda step, loss: None)
    assert np.mean(whole.losses[-6:]) < np.mean(whole.losses[:6])

    def stop(step: int, loss: float) -> None:
        if step == 21:
            raise KeyboardInterrupt

    part = EncoderTraining(encoder_file, sources, 24, seed=3)
    with pytest.raises(KeyboardInterrupt):
        part.run(tmp_path / "part", stop, every=4)
    again = EncoderTraining(encoder_file, sources, 24, seed=3)
    steps = list[int]()
    again.run(tmp_path / "part", lambda step, loss: steps.append(step), every=4)
    assert steps == [21, 22, 23, 24]
    assert all(torch.equal(whole.weights[name], again.weights[name]) for name in whole.weights)
    frozen = "embeddings.word_embeddings.weight"
    assert torch.equal(whole.trained().weights[frozen], encoder_file.weights[frozen])
    with pytest.raises(ValueError, match="other steps"):
        EncoderTraining(encoder_file, sources, 25, seed=3).run(tmp_path / "part", lambda step, loss: None)


def test_weights_are_those_of_two_scores_of_known_worth() -> None:
    rng = np.random.default_rng(0)
    read = []
    for number in range(200):
        relevant = np.zeros(30, bool)
        relevant[rng.integers(30)] = number % 10 > 0
        scanner, cosines = rng.normal(2 * relevant, 1), rng.normal(0.2 * relevant, 0.1)  # each two deviations
        read.append(Fitted("a", scanner.astype(np.float32), cosines.astype(np.float32), relevant))
    low, none = (np.full(30, value, np.float32) for value in (-5, 0)), np.zeros(30, bool)
    elsewhere = [Fitted("b", *low, none)] * 100
    weights = fitted_weights(read, MeaningWeights(mean=0.1, deviation=0.2), elsewhere)
    assert weights.scanner > 0
    assert 5 < weights.sentence / weights.scanner < 20
    assert (weights.mean, weights.deviation) == (0.1, 0.2)
    logits = np.concatenate([weights.logits(one.scanner, one.cosines) for one in read])
    share = np.concatenate([one.relevant for one in read]).mean()
    assert (1 / (1 + np.exp(-logits))).mean() == pytest.approx(share, abs=0.01)

    def answerable(some: Sequence[Fitted], without: bool = False) -> float:
        parts = [weights.logits(one.scanner, one.cosines)[~(one.relevant & without)] for one in some]
        return float(np.mean([weights.answerable(part) for part in parts]))

    answered = [one for one in read if one.relevant.any()]
    assert answerable(answered) > answerable(answered, without=True) + 0.1
    assert answerable(answered, without=True) > answerable(elsewhere) + 0.1
    with pytest.raises(ValueError, match="evidence"):
        fitted_weights([one for one in read if not one.relevant.any()], weights)


@pytest.mark.parametrize("steps", [0, 2])
def test_a_checkpoint_gets_an_encoder(
    bert_folder: Path, tiny_checkpoint: Path, tmp_path: Path, steps: int
) -> None:
    said = list[str]()
    base, out = str(tiny_checkpoint), tmp_path / "out"
    put_into_checkpoint(bert_folder, base, DOCUMENTS, out, steps, 20, 12, 0, said.append)
    scanner = Scanner.from_pretrained(out, device="cpu", dtype="float32")
    assert scanner.meaning is not None
    assert scanner.checkpoint.settings.training["encoder"]["steps"] == steps
    result = scanner.scan(QUESTIONS[1], DOCUMENTS[0].text)
    assert len(result.sentences) == 4
    first = read_encoder(out / ENCODER)[0].weights["encoder.layer.0.output.dense.bias"]
    assert (steps == 0) == torch.equal(
        first, find_encoder(bert_folder)[0].weights["encoder.layer.0.output.dense.bias"]
    )
    assert not list(out.glob("*.pt*"))


@pytest.mark.parametrize(("name", "value"), [("steps", -1), ("documents", 0), ("questions", 0)])
def test_numbers_out_of_range_are_refused(
    bert_folder: Path, tiny_checkpoint: Path, tmp_path: Path, name: str, value: int
) -> None:
    numbers = {"steps": 1, "documents": 1, "questions": 1} | {name: value}
    with pytest.raises(ValueError, match=name):
        put_into_checkpoint(
            bert_folder, str(tiny_checkpoint), DOCUMENTS, tmp_path, *numbers.values(), 0, lambda message: None
        )
