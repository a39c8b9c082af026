"""What a cross-reader starts from."""

import random

import pytest
import torch

from spscanner_lab.training import cross_reader
from spscanner_lab.training.cross_reader import CrossTraining
from spscanner_lab.training.encoder_data import Source
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.cross_reader import CrossReader


def test_an_untrained_cross_reader_gives_the_cosine_of_what_is_read_together(
    encoder_file: EncoderFile, letters: dict[str, Source]
) -> None:
    file = encoder_file._replace(cross=CrossTraining(encoder_file, letters).cross())
    reader = file.loaded_cross("cpu", torch.float32)
    encoder = file.loaded("", "cpu", torch.float32)
    assert reader is not None
    question = encoder.ids("who signed?")
    sentence = encoder.ids("He signed the treaty.")
    ((logit,),) = reader.forward([question], [[sentence]])
    states = encoder.model.states(
        [[*encoder.enclosed(question), *sentence, encoder.enclosed([])[1]]]
    )
    means = states[: len(question) + 2].mean(0), states[len(question) + 2 : -1].mean(0)
    cosine = torch.nn.functional.cosine_similarity(*means, dim=0)
    assert float(logit) == pytest.approx(20 * float(cosine) - 10, abs=1e-3)


def test_a_cross_reader_is_trained_further(
    encoder_file: EncoderFile, letters: dict[str, Source]
) -> None:
    first = CrossTraining(encoder_file, letters)
    with torch.no_grad():
        first.fast_weights["head"].fill_(0.25)
        first.weights["encoder.layer.0.output.dense.bias"].fill_(0.5)
    file = encoder_file._replace(cross=first.cross())
    second = CrossTraining(file, letters).cross()
    for name, weight in first.cross().items():
        assert torch.equal(second[name], weight), name


def test_a_near_miss_is_drawn_with_its_question(
    encoder_file: EncoderFile,
    letters: dict[str, Source],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cross_reader, "NEAR_MISS_SHARE", 1.0)
    near_miss = [3, 1, 4, 1]
    source = []
    for document in letters["letters"]:
        questions = []
        for question in document.questions:
            questions.append(question._replace(near_misses=(near_miss,)))
        source.append(document._replace(questions=questions))
    training = CrossTraining(encoder_file, {"letters": source})
    reader = CrossReader(
        Bert(encoder_file.shape, training.weights),
        encoder_file.tokenizer,
        training.fast_weights["head"],
    )
    question, miss = training._draw_examples(reader, random.Random(1))
    assert question.question != near_miss
    assert question.right.any()
    assert miss.question == near_miss
    assert not miss.right.any()
