"""The likeliest sentences are read once more, in windows, together with the question."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.checkpoint.encoder_file import HEAD, EncoderFile, cross_tensors
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.cross_reader import CrossReader, Range, Sentences, laid_around

WORDS = "the keeper wrote date he signed treaty it rained well was dry".split()


@pytest.fixture(scope="module")
def reader(encoder_file: EncoderFile) -> CrossReader:
    """A cross-reader of random weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = cross_tensors(encoder_file.shape)
    cross = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    cross[HEAD][-2:] = torch.tensor([1.0, -2.0])
    found = encoder_file._replace(cross=cross).loaded_cross("cpu", torch.float32)
    assert found is not None
    return found


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
    st.integers(1, 8),
)
def test_windows_hold_whole_sentences_around_it(lengths: list[int], random: Random, most: int) -> None:
    order = list(range(len(lengths)))
    random.shuffle(order)
    sentences = Sentences(len(lengths), lambda number: [7] * lengths[number], 40)
    windows = laid_around(order, sentences, most)
    assert 1 <= len(windows) <= most
    assert windows[0].first <= order[0] < windows[0].stop
    for window in windows:
        assert 0 <= window.first < window.stop <= len(lengths)
        assert sentences.tokens(window) <= 40
    if len(windows) < most:  # then each is inside one
        assert all(any(first <= number < stop for first, stop in windows) for number in order)


def test_the_ends_of_a_text_are_no_edges() -> None:
    assert Range(0, 3).depth(0, 9) == 2
    assert Range(0, 3).depth(2, 9) == 0
    assert Range(6, 9).depth(8, 9) == 2
    assert Range(0, 9).depth(4, 9) == 9


def test_states_of_two_texts_are_those_of_transformers(bert_folder: Path, reader: CrossReader) -> None:
    original = transformers.BertModel.from_pretrained(bert_folder).eval()
    weights = {name: original.state_dict()[name] for name in reader.model.shape.tensors()}
    model = Bert(reader.model.shape, weights)
    row, begin = [2, 5, 9, 3, 6, 7, 3], 4
    with torch.inference_mode():
        kinds = torch.tensor([[0] * begin + [1] * (len(row) - begin)])
        expected = original(torch.tensor([row]), token_type_ids=kinds).last_hidden_state[0]
    torch.testing.assert_close(model.states([row], [begin]), expected, atol=1e-5, rtol=0)


def test_a_sentence_is_read_with_its_neighbours_and_the_question(reader: CrossReader) -> None:
    sentences = [f"{WORDS[i % 12]} {WORDS[(5 * i) % 12]}." for i in range(12)]
    scores = np.zeros(12, np.float32)
    first = reader.logits("who signed the treaty?", sentences, scores)
    assert np.isfinite(first).all()
    assert not np.allclose(first, reader.logits("was it dry?", sentences, scores))
    changed = [*sentences[:1], "rained rained.", *sentences[2:]]
    again = reader.logits("who signed the treaty?", changed, scores)
    assert first[0] != again[0]
    assert np.array_equal(first, reader.logits("who signed the treaty?", sentences, scores))


def test_what_is_not_read_counts_as_hopeless(reader: CrossReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spscanner_rag.encoder.cross_reader.LIKELY", 2)
    sentences = [f"{WORDS[i % 12]} {WORDS[(7 * i) % 12]} {WORDS[(5 * i) % 12]}." for i in range(80)]
    scores = np.zeros(80, np.float32)
    scores[[10, 60]] = 1
    expected, steps = list[int](), list[int]()
    logits = reader.logits("who signed?", sentences, scores, expected.append, steps.append)
    read = np.flatnonzero(np.isfinite(logits))
    assert 1 < len(read) < 20
    assert all(min(abs(number - 10), abs(number - 60)) < 10 for number in read)
    assert sum(expected) == sum(steps) > 0


@pytest.mark.parametrize("sentence", ["", "\u200b", "well " * 10_000, "\ud800", "汉字" * 500])
def test_any_sentence_gets_a_number(reader: CrossReader, sentence: str) -> None:
    logits = reader.logits("was it dry? " * 500, [sentence, "it rained."], np.zeros(2, np.float32))
    assert np.isfinite(logits).all()
