import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.evaluation.data import Document
from spscanner_rag.segmentation import SentenceSegmenter
from spscanner_rag.training.teacher import TeacherScores, sentence_transformer


def letter_counts(texts: Sequence[str]) -> NDArray[np.float32]:
    """A stand-in for an embedding model: normalized letter counts."""
    counts = np.array([[text.count(letter) for letter in "abdehilmnorstuvwy"] for text in texts], np.float32)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


class Loader:
    def __init__(self) -> None:
        self.loads = 0

    def __call__(self, name: str) -> object:
        self.loads += 1
        return letter_counts


def test_embeddings_are_computed_once_and_kept(tmp_path: Path, documents: list[Document]) -> None:
    units = SentenceSegmenter().segment(documents[0].text)
    first, second = Loader(), Loader()
    computed = TeacherScores("letters", tmp_path, first).embeddings(documents[0], units)  # type: ignore[arg-type]
    stored = TeacherScores("letters", tmp_path, second).embeddings(documents[0], units)  # type: ignore[arg-type]
    assert (first.loads, second.loads) == (1, 0)
    for before, after in zip(computed, stored, strict=True):
        np.testing.assert_array_equal(before, after)
    assert computed[0].shape[0] == len(units)
    assert computed[1].shape[0] == len(documents[0].questions)
    expected = letter_counts([documents[0].text[unit.start : unit.end] for unit in units])
    np.testing.assert_allclose(computed[0], expected, atol=1e-3)


def test_another_teacher_text_or_segmentation_is_computed_anew(
    tmp_path: Path, documents: list[Document]
) -> None:
    units = SentenceSegmenter().segment(documents[0].text)
    loader = Loader()
    scores = TeacherScores("letters", tmp_path, loader)  # type: ignore[arg-type]
    scores.embeddings(documents[0], units)
    scores.embeddings(documents[1], SentenceSegmenter().segment(documents[1].text))
    scores.embeddings(documents[0], units[:-1])
    scores.embeddings(replace(documents[0], questions=documents[0].questions[:1]), units)
    TeacherScores("other", tmp_path, loader).embeddings(documents[0], units)  # type: ignore[arg-type]
    assert len(list(tmp_path.glob("*.npz"))) == 5


def test_a_missing_library_names_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match=r'pip install "spscanner-rag\[train\]"'):
        sentence_transformer("any")
