"""Soft targets: how close an embedding model finds each sentence to the question.

One relevant sentence in a hundred says little about the other ninety-nine; the teacher says something about
every one. Embeddings are computed once a document and kept on disk.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.evaluation.data import Document
from spscanner_rag.units import Unit

EMBEDDED_TOKENS = 128
"""Longer sentences are cut for the teacher (all-MiniLM-L6-v2 was trained on 128)."""


class Embedder(Protocol):
    """Texts to unit-length vectors: (texts, width), float32."""

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts, in order."""
        ...


def sentence_transformer(name: str, device: str = "cpu") -> Embedder:
    """A `sentence-transformers` model as embedder, in bfloat16.

    Parameters
    ----------
    name : str
        Model name or local folder.
    device : str, default "cpu"

    Raises
    ------
    ImportError
        If sentence-transformers is not installed; names the line that installs it.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            'a teacher needs sentence-transformers: pip install "spscanner-rag[train]"'
        ) from error
    model = SentenceTransformer(name, device=device).bfloat16()
    model.max_seq_length = min(EMBEDDED_TOKENS, model.max_seq_length or EMBEDDED_TOKENS)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = model.encode(
            list(texts),
            batch_size=32,
            normalize_embeddings=True,
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        array: NDArray[np.float32] = vectors.float().cpu().numpy()
        return array

    return embed


class TeacherScores:
    """Cosine of question and sentence for every sentence of a document, with embeddings kept on disk.

    Parameters
    ----------
    name : str
        The teacher's name: a model name or folder for `sentence_transformer`.
    folder : Path
        Where embeddings are kept, one file a document, named by teacher, units and questions.
    load : callable, default `sentence_transformer`
        Makes the embedder from the name; called only when something is not on disk yet.
    """

    def __init__(
        self, name: str, folder: Path, load: Callable[[str], Embedder] = sentence_transformer
    ) -> None:
        self.name, self.folder, self._load = name, folder, load
        self._embedder: Embedder | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def embeddings(
        self, document: Document, units: Sequence[Unit]
    ) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
        """Embeddings of a document's units and questions: (units, width) and (questions, width)."""
        path = self.folder / f"{self._key(document, units)}.npz"
        if path.exists():
            with np.load(path) as stored:
                return stored["units"], stored["questions"]
        if self._embedder is None:
            self._embedder = self._load(self.name)
        texts = [document.text[unit.start : unit.end] for unit in units]
        texts += [question.text for question in document.questions]
        vectors = self._embedder(texts).astype(np.float16)
        of_units, of_questions = vectors[: len(units)], vectors[len(units) :]
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, units=of_units, questions=of_questions)
        unfinished.replace(path)
        return of_units, of_questions

    def _key(self, document: Document, units: Sequence[Unit]) -> str:
        digest = hashlib.sha256(f"{Path(self.name).name}\n{document.text}".encode("utf-8", "replace"))
        for unit in units:
            digest.update(b"%d-%d," % (unit.start, unit.end))
        for question in document.questions:
            digest.update(question.text.encode("utf-8", "replace") + b"\n")
        return digest.hexdigest()[:32]
