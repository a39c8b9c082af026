"""The cross-reader in numpy computes what it computes in torch."""

import numpy as np
import torch

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import Bert, restored
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.numpy_bert import NumpyBert
from spscanner_rag.encoder.numpy_cross_reader import NumpyCrossReader


def test_logits_are_those_of_torch(encoder_file: EncoderFile) -> None:
    weights = restored(encoder_file.weights)
    head = torch.randn(encoder_file.shape.hidden_size + 2)
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    in_torch = CrossReader(
        Bert(encoder_file.shape, weights), encoder_file.tokenizer, head
    )
    in_numpy = NumpyCrossReader(
        NumpyBert(encoder_file.shape, arrays), encoder_file.tokenizer, head.numpy()
    )
    sentences = ["the keeper wrote", "he signed", "", "it rained"] * 5
    scores = np.linspace(0, 2, len(sentences), dtype=np.float32)
    logits = in_numpy.logits("who signed ?", sentences, scores)
    expected = in_torch.logits("who signed ?", sentences, scores)
    is_read = np.isfinite(expected)
    assert is_read.any()
    assert np.array_equal(np.isfinite(logits), is_read)
    assert np.abs(logits[is_read] - expected[is_read]).max() < 1e-4
