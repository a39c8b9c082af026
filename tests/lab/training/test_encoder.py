"""Training an encoder, weighting its cosines, and putting it into a checkpoint."""

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training import encoder
from spscanner_lab.training.encoder import (
    CrossTraining,
    EncoderTraining,
    Source,
    read_sources,
    stretch_of,
)
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from tests.lab.training.letters import DOCUMENTS


@pytest.fixture(scope="module")
def sources(encoder_file: EncoderFile) -> dict[str, Source]:
    """The documents, tokenized."""
    return read_sources(DOCUMENTS, encoder_file.loaded("", "cpu", torch.float32), 40)[0]


def test_a_tenth_is_set_aside(
    encoder_file: EncoderFile, sources: dict[str, Source]
) -> None:
    tokens = encoder_file.loaded("", "cpu", torch.float32)
    _, aside = read_sources(DOCUMENTS, tokens, 40)
    held_out = [one.doc_id for one in DOCUMENTS if is_held_out(one.doc_id)]
    assert len(aside) == 4  # a tenth of the documents asked for
    assert {one.doc_id for one in aside} < set(held_out)
    assert len(sources["letters"]) == 40 - len(held_out)
    with pytest.raises(ValueError, match="evidence"):
        read_sources([], tokens, 40)


def test_a_stretch_holds_what_its_questions_ask(sources: dict[str, Source]) -> None:
    for seed in range(20):
        sentences, questions = stretch_of(sources["letters"], random.Random(seed))
        assert questions
        for question in questions:
            assert (question.relevant < len(sentences)).all()
        assert len(questions[0].relevant)


@pytest.mark.parametrize("kind", [EncoderTraining, CrossTraining])
def test_training_lowers_the_loss_and_goes_on_where_it_ended(
    kind: type[EncoderTraining] | type[CrossTraining],
    encoder_file: EncoderFile,
    sources: dict[str, Source],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoder, "LEARNING_RATE", 3e-3)
    whole = kind(encoder_file, sources, seed=3)
    losses = [report.loss for report in whole.trainer(tmp_path / "whole", 24).run()]
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    part = kind(encoder_file, sources, seed=3)
    trainer = part.trainer(tmp_path / "part", 24)
    for _ in islice(trainer.run(), 21):
        pass
    trainer.save()
    again = kind(encoder_file, sources, seed=3)
    assert [report.step for report in again.trainer(tmp_path / "part", 24).run()] == [
        22,
        23,
        24,
    ]
    for steps in (20, 24):
        trainer = kind(encoder_file, sources, seed=3).trainer(tmp_path / "part", steps)
        # a training cannot be shortened
        assert (list(trainer.run()), trainer.step) == (
            [],
            24,
        )
    for (name, weight), other in zip(
        whole.named_parameters(), again.parameters(), strict=True
    ):
        assert torch.equal(weight, other), name
    frozen = "embeddings.word_embeddings.weight"
    assert torch.equal(whole.trained()[frozen], encoder_file.weights[frozen])
    with pytest.raises(ValueError, match=r"\(recipe: seed was 3"):
        kind(encoder_file, sources, seed=4).trainer(tmp_path / "part", 24)
    with pytest.raises(ValueError, match=r"\(inputs: sources"):
        kind(encoder_file, {"others": sources["letters"]}, seed=3).trainer(
            tmp_path / "part", 24
        )


def test_an_untrained_cross_reader_gives_the_cosine_of_what_is_read_together(
    encoder_file: EncoderFile, sources: dict[str, Source]
) -> None:
    file = encoder_file._replace(cross=CrossTraining(encoder_file, sources).cross())
    reader, encoder = (
        file.loaded_cross("cpu", torch.float32),
        file.loaded("", "cpu", torch.float32),
    )
    assert reader is not None
    question, sentence = (
        encoder.ids(text) for text in ("who signed?", "He signed the treaty.")
    )
    ((logit,),) = reader.forward([question], [[sentence]])
    states = encoder.model.states(
        [[*encoder.enclosed(question), *sentence, encoder.enclosed([])[1]]]
    )
    means = states[: len(question) + 2].mean(0), states[len(question) + 2 : -1].mean(0)
    cosine = torch.nn.functional.cosine_similarity(*means, dim=0)
    assert float(logit) == pytest.approx(20 * float(cosine) - 10, abs=1e-3)
