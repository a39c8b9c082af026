"""BM25 over the units of one document or of a collection."""

import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spscanner_rag.baselines.base import Baseline, Scores, TextCache, UnitKind, log_odds
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.query_counts import count_stems
from spscanner_rag.lexical.words import index_words, words_apart
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.languages import CJK, ENGLISH, STOP_WORDS_OF
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:
    import bm25s


class BM25(Baseline):
    """BM25 (Robertson et al., 1994), computed by `bm25s` on Snowball stems, without stop words and question words.

    The corpus is the units of the document, or of all documents that a query is asked
    of. The raw score s of a unit is the sum over the query's words of ln(1 + (N - n +
    0.5) / (n + 0.5)) * f / (f + k1 * (1 - b + b * l / L)), where n of the N units
    contain the word, f is its count in this unit, l the unit's length in words and L
    the mean of l. Users see s / (1 + s).

    Parameters
    ----------
    k1 : float, default 0.9
        How slowly the effect of a repeated word saturates; above 0. The defaults of
        ``k1`` and ``b`` are Anserini's, which suit units as short as sentences better
        than 1.5 and 0.75.
    b : float, default 0.4
        Strength of the length normalization, from 0 to 1.
    language : str, default "auto"
        Language of the Snowball stemmer, or "cjk" for pairs of neighbouring characters.
        "auto" is the language of each text, as the scanner's lexical channel recognizes
        it, else English.
    keep_texts : int, default 4
        Number of texts whose index is kept for further questions.
    unit
        See `Baseline`.
    """

    name = "bm25"
    keeps_texts = True
    uses_collection = True

    def __init__(
        self,
        unit: UnitKind | Segmenter = "sentence",
        *,
        k1: float = 0.9,
        b: float = 0.4,
        language: str = "auto",
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit)
        import_extra("bm25s", "BM25", "baselines")
        import Stemmer

        if k1 <= 0 or not 0 <= b <= 1:
            raise ValueError(
                f"got k1={k1}, b={b}; expected k1 above 0 and b from 0 to 1"
            )
        known = ("auto", *Stemmer.algorithms(), CJK)
        if language not in known:
            raise ValueError(
                f"language is {language!r}; expected one of {', '.join(known)}"
            )
        self.k1, self.b, self.language = k1, b, language
        self._indexes: TextCache[tuple[bm25s.BM25 | None, str]] = TextCache(keep_texts)
        self._counted: TextCache[tuple[list[Counter[str]], str]] = TextCache(keep_texts)
        self._collections: dict[
            str, tuple[object, list[str], float]
        ] = {}  # by language

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """BM25 scores, 0 and above, with the units of the text as the corpus: (units,)."""
        index, language = self._indexes.get(
            text, units, lambda: self._index(text, units)
        )
        words = self._words([query], language)[0]
        if index is None or not words:
            return np.zeros(len(units), np.float32)
        scores: Scores = index.get_scores(words).astype(np.float32)
        return scores

    def raw_scores_many(
        self,
        requests: Sequence[Request],
        cancelled: Cancelled = never,
        among: CollectionIndex | None = None,
    ) -> Iterator[Scores]:
        """BM25 scores in several texts, or with a collection as the corpus: (units,) for each text."""
        for request in requests:
            stop_if(cancelled, "between two texts")
            yield (
                self.raw_scores(*request)
                if among is None
                else self._among(*request, among)
            )

    def _among(
        self, query: str, text: str, units: Sequence[Unit], collection: CollectionIndex
    ) -> Scores:
        counted, language = self._counted.get(
            text, units, lambda: self._count(text, units)
        )
        stems, mean_words = self._stems(collection, language)
        wanted = list(dict.fromkeys(self._words([query], language)[0]))
        places = {stem: number for number, stem in enumerate(wanted)}
        postings = collection.postings
        columns = np.full(len(collection.vocabulary), -1)  # the vocabulary only grows
        columns[: len(stems)] = [places.get(stem, -1) for stem in stems]
        counts = count_stems(postings, columns, len(wanted))
        frequency = np.bincount(counts.stems, minlength=len(wanted))
        idf = np.log1p(
            (counts.n_units - frequency + 0.5) / (frequency + 0.5)
        )  # Lucene's formula
        scores = np.zeros(len(units))
        for number, times in enumerate(counted):
            norm = self.k1 * (1 - self.b + self.b * times.total() / mean_words)
            scores[number] = sum(
                rarity * times[word] / (times[word] + norm)
                for word, rarity in zip(wanted, idf, strict=True)
            )
        return scores.astype(np.float32)

    def _stems(
        self, collection: CollectionIndex, language: str
    ) -> tuple[list[str], float]:
        """The stems of a collection's words and the mean number of words in a unit; both are kept."""
        key = (weakref.ref(collection), collection.n_units)
        kept = self._collections.get(language)
        if kept is None or kept[0] != key:
            postings = collection.postings
            stems = [
                found[0] if found else ""
                for found in self._words(collection.vocabulary, language)
            ]
            has_stem = np.array([bool(stem) for stem in stems], bool)[postings.words]
            counted = postings.times[np.repeat(has_stem, np.diff(postings.stops))].sum(
                dtype=np.int64
            )
            kept = self._collections[language] = (
                key,
                stems,
                max(float(counted) / max(key[1], 1), 1e-9),
            )
        return kept[1:]

    def _count(
        self, text: str, units: Sequence[Unit]
    ) -> tuple[list[Counter[str]], str]:
        words, language = self._words_of(text, units)
        return [Counter(own) for own in words], language

    def _words_of(
        self, text: str, units: Sequence[Unit]
    ) -> tuple[list[list[str]], str]:
        texts = [unit.text_with_headings(text) for unit in units]
        language = (
            index_words(texts).language if self.language == "auto" else self.language
        )
        return self._words(texts, language), language

    def logits(self, raw: Scores) -> Scores:
        """The logit of s / (1 + s) is log(s)."""
        return log_odds(raw / (1 + raw))

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_collections": {}}

    def _index(
        self, text: str, units: Sequence[Unit]
    ) -> "tuple[bm25s.BM25 | None, str]":
        import bm25s

        words, language = self._words_of(text, units)
        if not any(words):
            return None, language  # bm25s refuses a corpus without words
        index = bm25s.BM25(k1=self.k1, b=self.b)
        index.index(words, show_progress=False)
        return index, language

    def _words(self, texts: list[str], language: str) -> list[list[str]]:
        import bm25s
        import Stemmer

        # a new one for each call, as stemmers are not thread-safe
        stemmer = Stemmer.Stemmer(ENGLISH if language == CJK else language)
        if language == CJK:
            texts = [words_apart(text) for text in fold_texts(texts)]
        words: list[list[str]] = bm25s.tokenize(
            [replace_surrogates(text) for text in fold_texts(texts)],
            stopwords=sorted(STOP_WORDS_OF.get(language, STOP_WORDS_OF[ENGLISH])),
            stemmer=stemmer,
            return_ids=False,
            show_progress=False,
        )
        return words
