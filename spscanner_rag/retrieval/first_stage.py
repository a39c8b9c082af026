"""The first stage: chooses the texts of a corpus that are read for a query."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.scorers import Cancelled, Scorer, never

OwnFirstStage = Literal["bm25", "none"]
"""The first stages that need no retriever of a framework."""

ChosenText = tuple[int, float | None]
"""The index of a text, and its score if it was ranked."""

LoadScorer = Callable[[], Scorer | None]
"""Loads a scorer; None for none."""


def no_scorer() -> None:
    """Return None, as the `LoadScorer` where texts are chosen by words alone."""


def choose_texts(
    held_texts: HeldTexts,
    query: str,
    bounds: ReadBounds,
    among: Sequence[int] | None = None,
    load_scorer: LoadScorer = no_scorer,
    cancelled: Cancelled = never,
) -> list[ChosenText]:
    """Choose the texts to read for a query, in the order of the corpus.

    If the bounds admit all texts, none has a score. Otherwise
    `CollectionIndex.best_texts` ranks them; those without a word of the query come
    last, without a score. If the scorer has an encoder, the score is the sum of that
    score and of the best sentence's meaning, both standardized.

    Parameters
    ----------
    held_texts : HeldTexts
        The texts, counted.
    query : str
        The query.
    bounds : ReadBounds
        How much is read.
    among : sequence of int, optional
        Indices of the texts to choose from; default: all.
    load_scorer : callable
        Called only if texts must be chosen.
    cancelled : callable
        Ends the encoding of texts.
    """
    candidates: Sequence[int] = range(len(held_texts.texts))
    if among is not None:
        candidates = among
    filled = [number for number in candidates if held_texts.tokens[number]]
    if all_are_read(held_texts, bounds, filled):
        return [(number, None) for number in filled]
    scores = dict(_by_words(held_texts, query, filled))
    scorer = load_scorer()
    if scorer is not None and scorer.meaning is not None:
        meaning_logits = held_texts.meaning_logits(query, scorer, filled, cancelled)
        if meaning_logits:
            scores = _by_words_and_meaning(scores, meaning_logits)
    unranked = [number for number in filled if number not in scores]
    ranking = [*scores, *unranked]
    ranks = bounds.within(_tokens_of(held_texts, ranking))
    chosen = sorted(ranking[rank] for rank in ranks)
    return [(number, scores.get(number)) for number in chosen]


def all_are_read(
    held_texts: HeldTexts, bounds: ReadBounds, numbers: Sequence[int]
) -> bool:
    """Tell whether the bounds admit all of some texts."""
    within = bounds.within(_tokens_of(held_texts, numbers))
    return len(within) == len(numbers)


def _tokens_of(held_texts: HeldTexts, numbers: Sequence[int]) -> list[int]:
    return [held_texts.tokens[number] for number in numbers]


def _by_words(
    held_texts: HeldTexts, query: str, among: Sequence[int]
) -> list[tuple[int, float]]:
    """Some texts and their scores by words, best first."""
    candidates = set(among)
    return [entry for entry in held_texts.ranking(query) if entry[0] in candidates]


def _by_words_and_meaning(
    word_scores: dict[int, float], meaning_logits: dict[int, float]
) -> dict[int, float]:
    """The sums of both scores, standardized, best first.

    A text without a score by meaning, as in a language that no encoder reads, has that
    of an average text.
    """
    numbers = list(meaning_logits)
    numbers += [number for number in word_scores if number not in meaning_logits]
    lowest = min(word_scores.values(), default=0.0) - 1.0
    lexical = _standardized([word_scores.get(number, lowest) for number in numbers])
    semantic = np.zeros(len(numbers))
    semantic[: len(meaning_logits)] = _standardized(list(meaning_logits.values()))
    scores = dict(zip(numbers, (lexical + semantic).tolist(), strict=True))
    return dict(sorted(scores.items(), key=lambda entry: -entry[1]))


def _standardized(values: Sequence[float]) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    return np.asarray((scores - scores.mean()) / max(float(scores.std()), 1e-9))
