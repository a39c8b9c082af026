"""Dense retrieval of units in their context, by pooling token states of windows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spscanner_rag.baselines.baseline import Scores
from spscanner_rag.baselines.embedding import Embedding
from spscanner_rag.baselines.embedding_models import installed
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.checkpoint.encoder_file import find_encoder
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.scan.devices import choose
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.units import Segmenter, Unit


class LateChunking(Embedding[SentenceVectors]):
    """Dense retrieval of units in their context (Günther et al. 2024).

    The token states of windows of 200 tokens that overlap by half are pooled for each
    unit; see `encoder.token_encoder.TokenEncoder`. Users see the score
    (1 + cosine) / 2.

    Parameters
    ----------
    embedder : str, Path or object, default "minilm"
        The folder or Hub id of a BERT-like sentence-transformers model, or an embedding
        object (see `embedder_of`). An object only embeds whole texts, so a unit's
        vector is added to those of its windows.
    keep_texts : int, default 4
        Number of texts whose vectors are kept for further questions.
    unit
        See `Baseline`.
    """

    def __init__(
        self,
        embedder: str | Path | object = "minilm",
        unit: UnitKind | Segmenter = "sentence",
        *,
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit, keep_texts)
        self.encoder: SentenceEncoder
        if isinstance(embedder, str | Path):
            file, digest = find_encoder(installed(str(embedder)))
            self.encoder = file.loaded(digest, "cpu", choose("cpu").dtype)
        else:
            self.encoder = TextEncoder(embedder)
        name = embedder if isinstance(embedder, str) else type(embedder).__name__
        self.name = f"latechunking:{name}"

    def _vectors_of_units(self, text: str, units: Sequence[Unit]) -> SentenceVectors:
        return self.encoder.vectors([unit.model_text for unit in fold_units(units)])

    def _vector_of_query(self, query: str, vectors: SentenceVectors) -> Scores:
        return self.encoder.question(folded(query))

    def _similarities(self, question: Scores, vectors: SentenceVectors) -> Scores:
        return np.clip(vectors.cosines(question), -1, 1)
