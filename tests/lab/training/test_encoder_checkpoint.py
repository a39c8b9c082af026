"""Putting an encoder and its weights into a checkpoint."""

from pathlib import Path

import pytest
import torch

from spscanner_lab.training.encoder_checkpoint import (
    EncoderNumbers,
    put_into_checkpoint,
)
from spscanner_rag import Scanner
from spscanner_rag.checkpoint.encoder_file import find_encoder, read_encoder
from spscanner_rag.checkpoint.file_names import ENCODER
from tests.lab.training.letters import DOCUMENTS, QUESTIONS


@pytest.mark.parametrize("steps", [0, 2])
def test_a_checkpoint_gets_an_encoder(
    bert_folder: Path, tiny_checkpoint: Path, tmp_path: Path, steps: int
) -> None:
    messages = list[str]()
    base = str(tiny_checkpoint)
    out = tmp_path / "out"
    numbers = EncoderNumbers(steps, cross_steps=steps, documents=20, questions=12)
    put_into_checkpoint(bert_folder, base, DOCUMENTS, out, numbers, messages.append)
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
    assert (scanner.meaning.cross is not None) == (steps > 0)
