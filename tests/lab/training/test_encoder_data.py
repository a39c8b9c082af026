"""Tokenizing documents for an encoder's training, and drawing stretches of them."""

import random

import pytest
import torch

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.encoder_data import Source, read_sources, stretch_of
from spscanner_rag.checkpoint.encoder_file import EncoderFile
from tests.lab.training.letters import DOCUMENTS

CHAT = """[12:01] Ann: I pay the rent. It is due in May.
[12:02] Bob: I pay for the heating.
[12:03] Ann: Good.
[12:04] Bob: Good."""


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


def test_turns_are_read_with_their_speaker_and_names_give_near_misses(
    encoder_file: EncoderFile,
) -> None:
    question = Question("1", "What does Ann pay?", ((13, 26),))
    document = Document("chat-1", "chat", "", CHAT, (question,))
    assert not is_held_out(document.doc_id)
    tokens = encoder_file.loaded("", "cpu", torch.float32)
    sources, _ = read_sources([document], tokens, 40)
    ((sentences, questions),) = sources["chat"]
    assert len(sentences) == 4
    assert sentences[1] == tokens.ids("[12:02] Bob: I pay for the heating.")
    assert questions[0].relevant.tolist() == [0]
    assert questions[0].near_misses == (tokens.question_ids("What does Bob pay?"),)
