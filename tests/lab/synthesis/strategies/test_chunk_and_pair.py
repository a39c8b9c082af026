"""The strategies on chunks: answers, evidence, and the nearest other chunk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.baselines.embedders import Encoder
from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.synthesis import start
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError
from spscanner_rag.lab.synthesis.prompt_files import read_prompts
from spscanner_rag.lab.synthesis.scripted import SCRIPTED, scripted_reply
from spscanner_rag.lab.synthesis.strategies.made import QuestionCheck
from spscanner_rag.lab.synthesis.strategies.pair import PairMaker

from ..conftest import SETTINGS, Make
from .test_link import sub_document


def letters(texts: list[str]) -> object:
    """Texts as counts of letters."""
    return np.array(
        [[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], float
    )


def test_chunk_questions_have_answers_and_evidence(make: Make, tmp_path: Path) -> None:
    settings = replace(SETTINGS, strategy="chunk", sizes=(800,), weights=(1.0,))
    run = make(scripted_reply, settings=settings)
    documents = list(read_documents([tmp_path / "out" / "train.jsonl"]))
    assert len(documents) == run.outcomes.examples >= 10
    for document in documents:
        (question,) = document.questions
        start, end = question.evidence[0]
        assert question.answers == (document.text[start:end],)


def test_an_answer_that_depends_on_nothing(make: Make) -> None:
    settings = replace(SETTINGS, strategy="chunk", sizes=(800,), weights=(1.0,))
    run = make(lambda prompt: "QUESTION: Who came?\nANSWER: Nobody.\nINDICES: NONE", settings=settings)
    assert run.outcomes.reasons == {"chunk_question: the answer depends on no sentence": 12}


def test_pair_questions_need_both_chunks(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(SETTINGS, strategy="pair", sizes=(1200,), weights=(1.0,))
    run = make(scripted_reply, settings=settings, embedder=letters)
    documents = list(read_documents([tmp_path / "out" / "train.jsonl"]))
    assert len(documents) == run.outcomes.examples > 0
    assert isinstance(
        start.maker_of(settings, start.RunOptions(sources=(), embedder=letters), None), PairMaker
    )


def test_the_nearest_chunk_is_taken() -> None:
    def embed(texts: list[str]) -> object:  # the second of three is nearest to both others
        angles = {0: 0.0, 1: 0.5, 2: 1.2}
        order = {text: number for number, text in enumerate(sorted(texts, key=sub.text.index))}
        return np.array([[np.cos(angles[order[text]]), np.sin(angles[order[text]])] for text in texts])

    sub = sub_document(60)
    settings = replace(SETTINGS, strategy="pair")
    maker = PairMaker(settings, QuestionCheck(settings), Encoder(embed, embed, "angles"))
    talk = Conversation(Asker().ask_one, SCRIPTED, read_prompts())
    made = maker.make(sub, talk)
    assert 20 in (made.details["chunk"][0], made.details["linked_unit"])
    assert made.details["similarity"] in (round(np.cos(0.5), 4), round(np.cos(0.7), 4))
    starts = [start for start, _ in made.evidence]
    first, second = made.details["contexts"]
    assert any(first[0] <= start < first[1] for start in starts)
    assert any(second[0] <= start < second[1] for start in starts)
    with pytest.raises(DroppedError, match="too few sentences for two chunks"):
        maker.make(sub_document(30), talk)
