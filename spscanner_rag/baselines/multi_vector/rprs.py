"""Documents as queries: relevance by the share of sentences that find a near one on the other side (RPRS)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, log_odds
from spscanner_rag.baselines.embedders import MINILM, embed_checked, encoder_of
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit

Scores = NDArray[np.float32]


class RPRS(Baseline):
    """RPRS, for queries as long as documents (Askari et al., 2023): the score of a unit is QP * DP.

    With the cosines (m, n) of m sentences of the query and n of the unit, QP is the share of the query's sentences
    whose highest cosine is at least ``threshold``, and DP the share of the unit's. (The published method takes the
    best k sentences of a collection instead of a threshold, which needs its index.) Users see QP * DP; units of
    the same score keep their order.

    Parameters
    ----------
    embedder : str or object, default "minilm"
        Embeds sentences; see `encoder_of`.
    unit : str or Segmenter, default "document"
        See `Baseline`.
    threshold : float, default 0.5
        The cosine from which two sentences are near, from -1 to 1.
    batch_size : int, default 32
        Sentences per forward pass of a sentence-transformers model.
    device : str, optional
        For a model given by name. Default: the choice of sentence-transformers.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    keep_texts : int, default 16
        Number of texts, queries included, whose vectors are kept.

    Raises
    ------
    ImportError
        If sentence-transformers is needed and not installed.
    ValueError
        For a threshold out of range.
    """

    keeps_texts = True

    def __init__(
        self,
        embedder: object = "minilm",
        unit: UnitKind | Segmenter = "document",
        *,
        threshold: float = 0.5,
        batch_size: int = 32,
        device: str | None = None,
        trust_remote_code: bool = False,
        keep_texts: int = 16,
    ) -> None:
        super().__init__(unit)
        if not -1 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold!r}; expected a cosine from -1 to 1")
        if embedder == "minilm":
            embedder = MINILM
        self.threshold = threshold
        self._encoder = encoder_of(
            embedder, batch_size=batch_size, device=device, trust_remote_code=trust_remote_code
        )
        self.name = f"rprs:{self._encoder.name}"
        self._vectors: TextCache[Scores] = TextCache(keep_texts)

    @property
    def index_bytes(self) -> int:
        """Bytes of the vectors that are kept for further questions."""
        return sum(vectors.nbytes for vectors in self._vectors.values())

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """QP * DP of each unit: (units,)."""
        asked = self._sentences(query)
        return np.array([self._score(asked, unit.own_text(text)) for unit in units], np.float32)

    def logits(self, raw: Scores) -> Scores:
        """The logit of QP * DP, a share."""
        return log_odds(raw)

    def _score(self, asked: Scores, text: str) -> float:
        near = asked @ self._sentences(text).T >= self.threshold - 1e-6  # (m, n)
        return float(near.any(axis=1).mean() * near.any(axis=0).mean()) if near.size else 0.0

    def _sentences(self, text: str) -> Scores:
        """Vectors of length 1 of the sentences of a text: (sentences, width)."""

        def embedded() -> Scores:
            sentences = [text[unit.start : unit.end] for unit in SentenceSegmenter().segment(text)]
            vectors = embed_checked(self._encoder.passages, sentences)
            return np.asarray(
                vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32
            )

        return self._vectors.get(text, (), embedded)
