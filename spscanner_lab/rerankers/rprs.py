"""Relevance by proportions of similar sentences, for long queries (RPRS)."""

from collections.abc import Iterator, Sequence

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.embedding_models import encoder_of
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.encoder.embedders import embed_checked
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


class RPRS(Baseline):
    """RPRS, for queries as long as documents (Askari et al., 2023).

    The score of a unit is QP * DP. With the cosines (m, n) of m sentences of the query
    and n of the unit, QP is the share of the query's sentences whose highest cosine is
    at least ``threshold``, and DP the share of the unit's. The published method takes
    the best k sentences of a collection instead of a threshold, which needs its index.
    Units of the same score stay in their order.

    Parameters
    ----------
    embedder : str or object, default "sentence-transformers/all-MiniLM-L6-v2"
        Embeds sentences; see `encoder_of`.
    unit : str or Segmenter, default "document"
        See `Baseline`.
    threshold : float, default 0.5
        The cosine from which two sentences are near, from -1 to 1.
    device : str, optional
        For a model given by name.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.
    keep_texts : int, default 16
        Number of texts, queries and units, whose vectors are stored.

    Raises
    ------
    ImportError
        If sentence-transformers is needed and not installed.
    ValueError
        For a threshold out of range.
    """

    def __init__(
        self,
        embedder: object = MINILM,
        unit: UnitKind | Segmenter = "document",
        *,
        threshold: float = 0.5,
        device: str | None = None,
        trust_remote_code: bool = False,
        keep_texts: int = 16,
    ) -> None:
        super().__init__(unit)
        if not -1 <= threshold <= 1:
            raise ValueError(
                f"threshold is {threshold!r}; expected a cosine from -1 to 1"
            )
        self.threshold = threshold
        self._encoder = encoder_of(
            embedder, device=device, trust_remote_code=trust_remote_code
        )
        self.name = f"rprs:{self._encoder.name}"
        self._vectors: TextCache[Scores] = TextCache(keep_texts)

    @property
    def keeps_texts(self) -> bool:
        """True, since the vectors of units are stored."""
        return True

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """QP * DP of each unit: (units,) each."""
        for query, text, units in requests:
            query_vectors = self._sentence_vectors(query)
            shares = []
            for unit in units:
                stop_if(cancelled, "between two units")
                unit_vectors = self._sentence_vectors(unit.text_with_headings(text))
                shares.append(self._share(query_vectors, unit_vectors))
            yield np.array(shares, np.float32)

    def logits(self, raw: Scores) -> Scores:
        """The logit of QP * DP, a share: (units,)."""
        return log_odds(raw)

    def _share(self, query_vectors: Scores, unit_vectors: Scores) -> float:
        """Return QP * DP of vectors (m, width) and (n, width)."""
        cosines = query_vectors @ unit_vectors.T  # (m, n)
        is_near = cosines >= self.threshold - 1e-6
        if not is_near.size:
            return 0.0
        query_share = is_near.any(axis=1).mean()
        unit_share = is_near.any(axis=0).mean()
        return float(query_share * unit_share)

    def _sentence_vectors(self, text: str) -> Scores:
        """Return vectors of length 1 of the sentences of a text: (sentences, width)."""

        def embed() -> Scores:
            units = SentenceSegmenter().segment(text)
            sentences = [text[unit.start : unit.end] for unit in units]
            vectors = embed_checked(self._encoder.passages, sentences)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)

        return self._vectors.get(text, (), embed)
