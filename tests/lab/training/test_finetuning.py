"""Training an encoder or a cross-reader, interrupted or not."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_lab.training import finetuning
from spscanner_lab.training.cross_reader import CrossTraining
from spscanner_lab.training.encoder import EncoderTraining
from spscanner_lab.training.encoder_data import Source
from spscanner_rag.checkpoint.encoder_file import EncoderFile


@pytest.mark.parametrize("kind", [EncoderTraining, CrossTraining])
def test_training_lowers_the_loss_and_goes_on_where_it_ended(
    kind: type[EncoderTraining] | type[CrossTraining],
    encoder_file: EncoderFile,
    letters: dict[str, Source],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finetuning, "LEARNING_RATE", 3e-3)
    whole = kind(encoder_file, letters, seed=3)
    losses = [report.loss for report in whole.trainer(tmp_path / "whole", 24).run()]
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    part = kind(encoder_file, letters, seed=3)
    trainer = part.trainer(tmp_path / "part", 24)
    for _ in islice(trainer.run(), 21):
        pass
    trainer.save()
    again = kind(encoder_file, letters, seed=3)
    steps_again = [report.step for report in again.trainer(tmp_path / "part", 24).run()]
    assert steps_again == [22, 23, 24]
    for steps in (20, 24):
        trainer = kind(encoder_file, letters, seed=3).trainer(tmp_path / "part", steps)
        # a training cannot be shortened
        assert list(trainer.run()) == []
        assert trainer.step == 24
    for (name, weight), other in zip(
        whole.named_parameters(), again.parameters(), strict=True
    ):
        assert torch.equal(weight, other), name
    frozen = "embeddings.word_embeddings.weight"
    assert torch.equal(whole.trained()[frozen], encoder_file.weights[frozen])
    with pytest.raises(ValueError, match=r"\(recipe: seed was 3"):
        kind(encoder_file, letters, seed=4).trainer(tmp_path / "part", 24)
    with pytest.raises(ValueError, match=r"\(inputs: sources"):
        kind(encoder_file, {"others": letters["letters"]}, seed=3).trainer(
            tmp_path / "part", 24
        )
