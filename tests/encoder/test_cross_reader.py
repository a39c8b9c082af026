"""What the cross-reader reads, and the logits that it gives."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from spscanner_rag.checkpoint.encoder_content import HEAD, cross_tensors
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.cross_reader import CrossReader

WORDS = "the keeper wrote date he signed treaty it rained well was dry".split()


@pytest.fixture(scope="module")
def reader(encoder_file: EncoderFile) -> CrossReader:
    """A cross-reader with random weights."""
    generator = torch.Generator().manual_seed(0)
    shapes = cross_tensors(encoder_file.shape)
    cross = {
        name: torch.randn(shape, generator=generator) for name, shape in shapes.items()
    }
    cross[HEAD][-2:] = torch.tensor([1.0, -2.0])
    found = encoder_file._replace(cross=cross).loaded_cross("cpu", torch.float32)
    assert found is not None
    return found


def test_states_of_two_texts_are_those_of_transformers(
    bert_folder: Path, reader: CrossReader
) -> None:
    original = transformers.BertModel.from_pretrained(bert_folder).eval()
    weights = {
        name: original.state_dict()[name] for name in reader.model.shape.tensors()
    }
    model = Bert(reader.model.shape, weights)
    row, begin = [2, 5, 9, 3, 6, 7, 3], 4
    with torch.inference_mode():
        kinds = torch.tensor([[0] * begin + [1] * (len(row) - begin)])
        expected = original(
            torch.tensor([row]), token_type_ids=kinds
        ).last_hidden_state[0]
    torch.testing.assert_close(
        model.states([row], [begin]), expected, atol=1e-5, rtol=0
    )


def test_a_sentence_is_read_with_its_neighbours_and_the_question(
    reader: CrossReader,
) -> None:
    sentences = [f"{WORDS[i % 12]} {WORDS[(5 * i) % 12]}." for i in range(12)]
    scores = np.zeros(12, np.float32)
    first = reader.logits("who signed the treaty?", sentences, scores)
    assert np.isfinite(first).all()
    assert not np.allclose(first, reader.logits("was it dry?", sentences, scores))
    changed = [*sentences[:1], "rained rained.", *sentences[2:]]
    again = reader.logits("who signed the treaty?", changed, scores)
    assert first[0] != again[0]
    assert np.array_equal(
        first, reader.logits("who signed the treaty?", sentences, scores)
    )


def test_what_is_not_read_counts_as_hopeless(
    reader: CrossReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.encoder.sentence_cross_reader.LIKELY", 2)
    sentences = [
        f"{WORDS[i % 12]} {WORDS[(7 * i) % 12]} {WORDS[(5 * i) % 12]}."
        for i in range(80)
    ]
    scores = np.zeros(80, np.float32)
    scores[[10, 60]] = 1
    expected, steps = list[int](), list[int]()
    logits = reader.logits(
        "who signed?", sentences, scores, expected.append, steps.append
    )
    read = np.flatnonzero(np.isfinite(logits))
    assert 1 < len(read) < 20
    assert all(min(abs(number - 10), abs(number - 60)) < 10 for number in read)
    assert sum(expected) == sum(steps) > 0


@pytest.mark.parametrize(
    "sentence", ["", "\u200b", "well " * 10_000, "\ud800", "汉字" * 500]
)
def test_any_sentence_gets_a_number(reader: CrossReader, sentence: str) -> None:
    logits = reader.logits(
        "was it dry? " * 500, [sentence, "it rained."], np.zeros(2, np.float32)
    )
    assert np.isfinite(logits).all()


def test_the_end_of_a_long_question_is_read(reader: CrossReader) -> None:
    end = "who signed it " * reader.question_tokens
    scores = np.zeros(1, np.float32)
    first, second = (
        reader.logits(f"{start} {end}", ["He signed."], scores)
        for start in ("the keeper", "a widow")
    )
    assert first.tolist() == second.tolist()
    assert len(reader.question_ids(end)) == reader.question_tokens
    assert reader.question_ids("the keeper " + end) == reader.question_ids(end)
