"""The steps of an encoder's training."""

import random

import torch

from spscanner_lab.training.encoder import EncoderTraining, draw_windows
from spscanner_lab.training.encoder_data import Source
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import WORD_EMBEDDINGS
from spscanner_rag.encoder.token_windows import WINDOW_TOKENS


def test_a_step_is_determined_by_its_generator(
    encoder_file: EncoderFile, letters: dict[str, Source]
) -> None:
    training = EncoderTraining(encoder_file, letters)
    loss = training.loss(random.Random(1))
    assert torch.equal(loss, training.loss(random.Random(1)))
    assert not torch.equal(loss, training.loss(random.Random(2)))
    loss.backward()  # type: ignore[no-untyped-call]
    assert training.weights[WORD_EMBEDDINGS].grad is None
    assert training.fast_weights["scale"].grad is not None


def test_windows_hold_whole_sentences_and_the_first_is_of_random_length() -> None:
    ends = list(range(10, 2010, 10))
    first_stops = set()
    for seed in range(20):
        windows = draw_windows(ends, random.Random(seed))
        starts = [start for start, _ in windows]
        stops = [stop for _, stop in windows]
        assert starts == [0, *stops[:-1]]
        assert stops[-1] == ends[-1]
        assert set(stops) <= set(ends)
        lengths = [stop - start for start, stop in windows]
        assert max(lengths) <= WINDOW_TOKENS
        first_stops.add(stops[0])
    assert len(first_stops) > 5
    # a sentence longer than the limit has a window for itself
    assert draw_windows([500, 510], random.Random(0)) == [(0, 500), (500, 510)]
