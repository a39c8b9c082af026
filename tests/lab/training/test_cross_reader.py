"""What a cross-reader starts from."""

import pytest
import torch

from spscanner_lab.training.cross_reader import CrossTraining
from spscanner_lab.training.encoder_data import Source
from spscanner_rag.checkpoint.encoder_file import EncoderFile


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
