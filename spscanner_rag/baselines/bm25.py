"""BM25 over the units of one document."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, log_odds, optional
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.text.lexical import STOP_WORDS
from spscanner_rag.text.units import Segmenter, Unit, readable

if TYPE_CHECKING:
    import bm25s


class BM25(Baseline):
    """BM25 by `bm25s`, with Snowball stems and without English stop words.

    The units of the document are the corpus: a word is rare if few of them hold it. The score that is shown
    is s / (1 + s) for a BM25 score s: 0 for a unit that shares no word with the query.

    Parameters
    ----------
    unit : str or Segmenter, default "sentence"
        See `Baseline`.
    k1 : float, default 0.9
        How soon a repeated word adds no more. The defaults of ``k1`` and ``b`` are those of Anserini, which suit
        units as short as sentences better than 1.5 and 0.75.
    b : float, default 0.4
        How much the length of a unit counts, 0 to 1.
    language : str, default "english"
        Snowball's name of the language to stem.
    stop_words : str or list of str, optional
        A language code of bm25s, or the words themselves; an empty list keeps all words. Default: the English
        ones that the scanner's lexical channel leaves out too, question words among them.
    keep_texts : int, default 4
        Indexes kept for further questions.

    Raises
    ------
    ImportError
        If bm25s is not installed; names the line that installs it.
    ValueError
        For a number out of range, or a language that has no stemmer.
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
