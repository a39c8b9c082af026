"""BM25 over the units of one document or of a collection."""

import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.query_counts import count_stems
from spscanner_rag.lexical.words import index_words, stemmer_of, words_apart
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.languages import CJK, ENGLISH, STOP_WORDS_OF
from spscanner_rag.text.scripts import LETTERS_WITH_MARKS
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit

_WORD_WITH_MARKS = f"[{LETTERS_WITH_MARKS}]{{2,}}"

if TYPE_CHECKING:
    import bm25s


class _TextIndex(NamedTuple):
    """The index of the units of one text."""

    searcher: "bm25s.BM25 | None"  # None for a text without words
    language: str


class _TextCounts(NamedTuple):
    """How often each unit of a text has each word."""

    counts: list[Counter[str]]  # by unit
    language: str


class _CollectionStems(NamedTuple):
    """What is computed once for a collection as it is now."""

    key: object
    stems: list[str]  # of the words of its vocabulary; "" for a stop word
    mean_words: float  # in a unit


class BM25(Baseline):
    """BM25 (Robertson et al., 1994) on Snowball stems.

    `bm25s` computes it, without stop words and question words. The corpus is the units
    of the document, or of all documents that a query is asked of. The raw score s of a
    unit is the sum over the query's words of ln(1 + (N - n + 0.5) / (n + 0.5)) * f / (f
    + k1 * (1 - b + b * l / L)), where n of the N units contain the word, f is its count
    in this unit, l the unit's length in words and L the mean of l. Users see s / (1 +
    s).

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

    Examples
    --------
    >>> scorer = BM25()
    >>> text = "Ships leave at noon. The keeper signed it. Nobody waits."
    >>> units = scorer.units_of(text)
    >>> int(scorer.score_units("Who signed it?", text, units).argmax())
    1
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
        languages = ("auto", *Stemmer.algorithms(), CJK)
        if language not in languages:
            raise ValueError(
                f"language is {language!r}; expected one of {', '.join(languages)}"
            )
        self.k1 = k1
        self.b = b
        self.language = language
        self._indexes: TextCache[_TextIndex] = TextCache(keep_texts)
        self._counts: TextCache[_TextCounts] = TextCache(keep_texts)
        self._collections: dict[str, _CollectionStems] = {}  # by language

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """BM25 scores, 0 and above, with the text's units as the corpus: (units,)."""
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
        """BM25 scores in several texts, (units,) for each.

        The corpus of a text is its own units, or those of a collection.
        """
        for request in requests:
            stop_if(cancelled, "between two texts")
            if among is None:
                yield self.raw_scores(*request)
            else:
                yield self._scores_among(*request, among)

    def _scores_among(
        self, query: str, text: str, units: Sequence[Unit], collection: CollectionIndex
    ) -> Scores:
        counts_by_unit, language = self._counts.get(
            text, units, lambda: self._count(text, units)
        )
        of_collection = self._collection_stems(collection, language)
        query_stems = list(dict.fromkeys(self._words([query], language)[0]))
        idf = _idf(collection, of_collection.stems, query_stems)
        scores = np.zeros(len(units))
        for number, counts in enumerate(counts_by_unit):
            length = counts.total() / of_collection.mean_words
            norm = self.k1 * (1 - self.b + self.b * length)
            terms = []
            for stem, rarity in zip(query_stems, idf, strict=True):
                terms.append(rarity * counts[stem] / (counts[stem] + norm))
            scores[number] = sum(terms)
        return scores.astype(np.float32)

    def _collection_stems(
        self, collection: CollectionIndex, language: str
    ) -> _CollectionStems:
        """The stems of a collection's words, kept until the collection grows."""
        key = (weakref.ref(collection), collection.n_units)
        before = self._collections.get(language)
        if before is not None and before.key == key:
            return before
        stems = []
        for words in self._words(collection.vocabulary, language):
            stems.append(words[0] if words else "")
        postings = collection.postings
        has_stem = np.array([bool(stem) for stem in stems], bool)[postings.words]
        in_postings = np.repeat(has_stem, np.diff(postings.stops))
        n_words = postings.times[in_postings].sum(dtype=np.int64)
        mean_words = max(float(n_words) / max(collection.n_units, 1), 1e-9)
        self._collections[language] = _CollectionStems(key, stems, mean_words)
        return self._collections[language]

    def _count(self, text: str, units: Sequence[Unit]) -> _TextCounts:
        words_by_unit, language = self._words_of(text, units)
        return _TextCounts([Counter(words) for words in words_by_unit], language)

    def _words_of(
        self, text: str, units: Sequence[Unit]
    ) -> tuple[list[list[str]], str]:
        texts = [unit.text_with_headings(text) for unit in units]
        language = self.language
        if language == "auto":
            language = index_words(texts).language
        return self._words(texts, language), language

    def logits(self, raw: Scores) -> Scores:
        """The logit of s / (1 + s) is log(s)."""
        return log_odds(raw / (1 + raw))

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_collections": {}}

    def _index(self, text: str, units: Sequence[Unit]) -> _TextIndex:
        import bm25s

        words, language = self._words_of(text, units)
        if not any(words):
            return _TextIndex(None, language)  # bm25s refuses a corpus without words
        index = bm25s.BM25(k1=self.k1, b=self.b)
        index.index(words, show_progress=False)
        return _TextIndex(index, language)

    def _words(self, texts: list[str], language: str) -> list[list[str]]:
        import bm25s
        import Stemmer

        stemmed_as = stemmer_of(language)
        stemmer = None
        if stemmed_as is not None:
            # a new one for each call, as stemmers are not thread-safe
            stemmer = Stemmer.Stemmer(stemmed_as)
        texts = [words_apart(text, language) for text in fold_texts(texts)]
        words: list[list[str]] = bm25s.tokenize(
            [replace_surrogates(text) for text in texts],
            token_pattern=_WORD_WITH_MARKS,
            stopwords=sorted(STOP_WORDS_OF.get(language, STOP_WORDS_OF[ENGLISH])),
            stemmer=stemmer,
            return_ids=False,
            show_progress=False,
        )
        return words


def _idf(
    collection: CollectionIndex, stems: list[str], query_stems: list[str]
) -> NDArray[np.float64]:
    """How rare each stem of a query is in a collection, by Lucene's formula."""
    number_of = {stem: number for number, stem in enumerate(query_stems)}
    columns = np.full(len(collection.vocabulary), -1)  # the vocabulary only grows
    columns[: len(stems)] = [number_of.get(stem, -1) for stem in stems]
    counts = count_stems(collection.postings, columns, len(query_stems))
    frequency = np.bincount(counts.stems, minlength=len(query_stems))
    shares = (counts.n_units - frequency + 0.5) / (frequency + 0.5)
    return np.asarray(np.log1p(shares), np.float64)
