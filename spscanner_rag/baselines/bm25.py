"""BM25 over the units of one document."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, log_odds, optional
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.text.units import Segmenter, Unit, readable
from spscanner_rag.text.words import STOP_WORDS

if TYPE_CHECKING:
    import bm25s


class BM25(Baseline):
    """BM25 (Robertson et al., 1994), computed by `bm25s` on Snowball stems, without English stop words.

    The units of the document are the corpus. The raw score s of a unit is the sum over the words of the query of
    ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * l / L)), for a word in n of N units that occurs
    f times in this one, of l words, where L is the mean of l. Users see s / (1 + s).

    Parameters
    ----------
    unit : str or Segmenter, default "sentence"
        See `Baseline`.
    k1 : float, default 0.9
        Above 0; how slowly the effect of a repeated word saturates. The defaults of ``k1`` and ``b`` are those of
        Anserini, which suit units as short as sentences better than 1.5 and 0.75.
    b : float, default 0.4
        Strength of the length normalization, from 0 to 1.
    language : str, default "english"
        Language of the Snowball stemmer.
    stop_words : str or list of str, optional
        A language code of bm25s, or the words themselves; an empty list keeps all words. Default: the English
        stop words of the scanner's lexical channel, which include question words.
    keep_texts : int, default 4
        Number of texts whose index is kept for further questions.

    Raises
    ------
    ImportError
        If bm25s is not installed; the message says how to install it.
    ValueError
        For a number out of range, or a language without a stemmer.
    """

    name = "bm25"

    def __init__(
        self,
        unit: UnitKind | Segmenter = "sentence",
        *,
        k1: float = 0.9,
        b: float = 0.4,
        language: str = "english",
        stop_words: str | list[str] | None = None,
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit)
        optional("bm25s", "BM25")
        import Stemmer

        if k1 <= 0 or not 0 <= b <= 1:
            raise ValueError(f"got k1={k1}, b={b}; expected k1 above 0 and b from 0 to 1")
        if language not in Stemmer.algorithms():
            raise ValueError(f"language is {language!r}; expected one of {', '.join(Stemmer.algorithms())}")
        self.k1, self.b, self.language = k1, b, language
        self.stop_words = sorted(STOP_WORDS) if stop_words is None else stop_words
        self._indexes: TextCache[bm25s.BM25 | None] = TextCache(keep_texts)

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """BM25 scores, 0 and above: (units,)."""
        index = self._indexes.get(text, units, lambda: self._index(text, units))
        words = self._words([query])[0]
        if index is None or not words:
            return np.zeros(len(units), np.float32)
        scores: NDArray[np.float32] = index.get_scores(words).astype(np.float32)
        return scores

    def logits(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """The logit of s / (1 + s) is log(s)."""
        return log_odds(raw / (1 + raw))

    def _index(self, text: str, units: Sequence[Unit]) -> "bm25s.BM25 | None":
        import bm25s

        words = self._words([text[unit.start : unit.end] for unit in units])
        if not any(words):
            return None  # bm25s refuses a corpus without words
        index = bm25s.BM25(k1=self.k1, b=self.b)
        index.index(words, show_progress=False)
        return index

    def _words(self, texts: list[str]) -> list[list[str]]:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer(self.language)  # one per call: it is not thread-safe
        words: list[list[str]] = bm25s.tokenize(
            [readable(text) for text in texts],
            stopwords=self.stop_words,
            stemmer=stemmer,
            return_ids=False,
            show_progress=False,
        )
        return words
