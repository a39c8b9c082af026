"""Tokenizing documents for an encoder's training, and drawing stretches of them."""

import random

import pytest
import torch

from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.encoder_data import Source, read_sources, stretch_of
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from tests.lab.training.letters import DOCUMENTS


def test_a_tenth_is_set_aside(
    encoder_file: EncoderFile, letters: dict[str, Source]
) -> None:
    tokens = encoder_file.loaded("", "cpu", torch.float32)
    _, aside = read_sources(DOCUMENTS, tokens, 40)
    held_out = [one.doc_id for one in DOCUMENTS if is_held_out(one.doc_id)]
    assert len(aside) == 4  # a tenth of the documents asked for
    assert {one.doc_id for one in aside} < set(held_out)
    assert len(letters["letters"]) == 40 - len(held_out)
    with pytest.raises(ValueError, match="evidence"):
        read_sources([], tokens, 40)


def test_a_stretch_holds_what_its_questions_ask(letters: dict[str, Source]) -> None:
    for seed in range(20):
        sentences, questions = stretch_of(letters["letters"], random.Random(seed))
        assert questions
        for question in questions:
            assert (question.relevant < len(sentences)).all()
        assert len(questions[0].relevant)
