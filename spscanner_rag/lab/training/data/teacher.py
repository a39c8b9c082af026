"""Soft targets: another model's score of every sentence for the question, computed once and kept on disk.

One relevant sentence in a hundred says little about the other ninety-nine; the teacher scores them too.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.cross_encoder import CrossEncoder
from spscanner_rag.baselines.dense import MINILM, encoder_of
from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.encoder.embedders import Embedder, embed_checked
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.scan.devices import choose
from spscanner_rag.text.units import Unit

CROSS_ENCODER = "cross-encoder:"  # prefix of a cross-encoder's name

EMBEDDED_TOKENS = 128
"""Tokens of a sentence that an embedding model reads (all-MiniLM-L6-v2 was trained on 128)."""

COSINE_SCALE = 4.0
LOGIT_SCALE = 0.25
"""Cosines of sentences differ by a few tenths, a cross-encoder's logits by about ten; times these, both have a
spread of about one."""


class Teacher(Protocol):
    """Scores every text for every question, with a spread of about one."""

    @property
    def all_questions_at_once(self) -> bool:
        """True if scoring all questions of a document costs little more than scoring one."""
        ...

    def scores(self, questions: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Score each text for each question: (questions, texts)."""
        ...


@dataclass(frozen=True)
class EmbeddingTeacher:
    """Cosines of an embedding model, times `COSINE_SCALE`."""

    encoder: Embedder
    all_questions_at_once = True

    def scores(self, questions: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Scaled cosines: (questions, texts)."""
        passages = embed_checked(self.encoder.passages, texts)  # (texts, width)
        queries = embed_checked(self.encoder.queries, questions, passages.shape[1])  # (questions, width)
        cosines: NDArray[np.float32] = _unit_length(queries) @ _unit_length(passages).T
        return cosines * np.float32(COSINE_SCALE)


@dataclass(frozen=True)
class CrossEncoderTeacher:
    """Logits of a cross-encoder, times `LOGIT_SCALE`."""

    model: CrossEncoder
    all_questions_at_once = False

    def scores(self, questions: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        """Scaled logits: (questions, texts)."""
        rows = [self.model.score_texts(question, texts) for question in questions]
        return np.stack(rows) * np.float32(LOGIT_SCALE)


def teacher_of(name: str, device: str = "cpu") -> Teacher:
    """Load the teacher with this name; ``ImportError``, which names the line to install, without its package.

    It is the name or folder of an embedding model of `sentence-transformers`, ``minilm`` for all-MiniLM-L6-v2,
    or ``cross-encoder:`` and the name or folder of a cross-encoder.
    """
    native = choose(device).dtype  # bfloat16 where the hardware multiplies it
    try:
        if name.startswith(CROSS_ENCODER):
            dtype = str(native).removeprefix("torch.")
            return CrossEncoderTeacher(
                CrossEncoder(name.removeprefix(CROSS_ENCODER), device=device, dtype=dtype)
            )
        encoder = encoder_of(MINILM if name == "minilm" else name, device=device)
    except ImportError as error:
        raise ImportError(
            'a teacher needs sentence-transformers: pip install "spscanner-rag[train]"'
        ) from error
    embedding: Any = encoder.model
    embedding.to(native)
    embedding.max_seq_length = min(EMBEDDED_TOKENS, embedding.max_seq_length or EMBEDDED_TOKENS)
    return EmbeddingTeacher(encoder)


def short_name(name: str) -> str:
    """A teacher's name without the folders in front of it."""
    kind = CROSS_ENCODER if name.startswith(CROSS_ENCODER) else ""
    return kind + Path(name.removeprefix(kind)).name


class TeacherScores:
    """A teacher's scores of the sentences of documents, kept on disk.

    ``folder`` holds a file for each document, named by a hash of teacher, text, units and questions. Several
    processes may share it: a score that another one overwrites is computed again.
    """

    def __init__(self, name: str, folder: Path, load: Callable[[str], Teacher] = teacher_of) -> None:
        self.name, self.folder, self._load = name, folder, load
        self._teacher: Teacher | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def of_question(self, document: Document, units: Sequence[Unit], place: int) -> NDArray[np.float32]:
        """Scores of a document's units for its question number ``place``: (units,)."""
        path = self.folder / f"{self._key(document, units)}.npy"
        scores = _kept(path, (len(document.questions), len(units)))
        if scores is None:
            scores = np.full((len(document.questions), len(units)), np.nan, np.float16)
        if np.isnan(scores[place]).any():
            if self._teacher is None:
                self._teacher = self._load(self.name)
            rows = list(range(len(scores))) if self._teacher.all_questions_at_once else [place]
            texts = [document.text[unit.start : unit.end] for unit in units]
            found = self._teacher.scores([document.questions[row].text for row in rows], texts)
            limit = float(np.finfo(np.float16).max)
            scores[rows] = np.clip(found, -limit, limit).astype(np.float16)
            # several workers may score the same document; np.save adds ".npy" to a path, but not to a file
            with whole_file(path, shared=True) as unfinished, unfinished.open("wb") as file:
                np.save(file, scores)
        return np.asarray(scores[place], np.float32)

    def _key(self, document: Document, units: Sequence[Unit]) -> str:
        # the short name, so that another machine can use the cache
        digest = hashlib.sha256(f"{short_name(self.name)}\n".encode("utf-8", "replace"))
        digest.update(document.text.encode("utf-8", "surrogatepass"))
        for unit in units:
            digest.update(b"%d-%d," % (unit.start, unit.end))
        for question in document.questions:
            digest.update(question.text.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()[:32]


def _kept(path: Path, shape: tuple[int, int]) -> NDArray[np.float16] | None:
    """Scores in a file; None if there is none, or a damaged one: they are computed again."""
    try:
        scores = np.load(path)
    except (FileNotFoundError, EOFError, ValueError):
        return None
    fits = isinstance(scores, np.ndarray) and scores.dtype == np.float16 and scores.shape == shape
    return scores if fits else None


def _unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors scaled to length one, except zeros: (vectors, width)."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
    return scaled
