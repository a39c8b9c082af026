"""Select the best sentences of a text, and make passages of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.diversity import diverse
from spscanner_rag.results.neighbours import Blocks, runs_of, with_neighbours
from spscanner_rag.results.passages import Located, Passage, shown_text
from spscanner_rag.results.ranking import rank
from spscanner_rag.results.recency import newest_first, recency_of
from spscanner_rag.results.selection import Order, Selection
from spscanner_rag.results.token_budget import TokenBudget
from spscanner_rag.text.keep_scale import Keep, KeepScale
from spscanner_rag.text.token_counts import CountTokens


@dataclass(frozen=True)
class SentenceSelector:
    """Selects among the scored sentences of one text.

    `picks` finds the sentences that a selection asks for, best first, and `passages`
    adds their neighbours and fits them into the budget.
    """

    text: str
    starts: NDArray[np.int64]  # (n,) of the sentences
    ends: NDArray[np.int64]  # (n,)
    logits: NDArray[np.float32]  # (n,)
    scores: NDArray[np.float64]  # (n,)
    blocks: Blocks
    document: Located | None = None
    relative: NDArray[np.float64] | None = None  # (n,) scores to cut at
    keep_scale: KeepScale | None = None
    shows_relative: bool = False
    owners: NDArray[np.integer[Any]] | None = None  # (n,) each sentence's document

    def picks(self, selection: Selection) -> NDArray[np.int64]:
        """Indices of the selected sentences, in the order of selecting: (picks,).

        The budget does not apply yet.
        """
        picks = self._best(selection)
        if selection.always_keep is None:
            return picks
        matching = []
        for number, sentence in enumerate(self._sentence_texts()):
            if selection.keeps(sentence):
                matching.append(number)
        ranked = self._ranked(selection)
        first = ranked[np.isin(ranked, matching)]
        return np.concatenate([first, picks[~np.isin(picks, first)]])

    def passages(
        self,
        picks: NDArray[np.int64],
        selection: Selection,
        count_tokens: CountTokens | None,
    ) -> tuple[Passage, ...]:
        """The passages of ``picks``, best first, and of their neighbours.

        They fit the selection's budget, if it has one, by ``count_tokens``.
        """
        if selection.max_tokens is None or count_tokens is None:
            sentences = with_neighbours(picks, selection.context, self.blocks)
        else:
            sentences = self._within_budget(
                picks, selection, selection.max_tokens, count_tokens
            )
        return self._as_passages(sentences, selection)

    def _ranked(self, selection: Selection) -> NDArray[np.int64]:
        """All sentences, the best or, of nearly equal ones, the preferred first."""
        return self._best_first if selection.prefer is None else self._newest_first

    @cached_property
    def _best_first(self) -> NDArray[np.int64]:
        return rank(self.logits)

    @cached_property
    def _newest_first(self) -> NDArray[np.int64]:
        recency = recency_of(self.text, self.starts, self.owners)
        return newest_first(self._best_first, self.logits, recency)

    def _best(self, selection: Selection) -> NDArray[np.int64]:
        """The sentences that the scores select, in the order of selecting: (picks,)."""
        ranked = self._ranked(selection)
        if self.owners is not None and selection.top_k_per_text is not None:
            ranked = _best_of_each_text(ranked, self.owners, selection.top_k_per_text)
        falling_scores = np.sort(self.scores[ranked])[::-1]
        limit = selection.limit(len(self.logits), falling_scores)
        if selection.keep is not None:
            ranked = ranked[self._kept_by(selection.keep)[ranked]]
        if selection.threshold is not None:
            ranked = ranked[self._shown_scores[ranked] >= selection.threshold]
        picks = ranked[:limit]
        if selection.diversity == 1:
            return picks
        return diverse(
            self._sentence_texts(),
            self.scores,
            ranked,
            len(picks),
            selection.diversity,
        )

    def _kept_by(self, keep: Keep) -> NDArray[np.bool_]:
        """Which sentences a preset keeps, (n,)."""
        if self.relative is None or self.keep_scale is None:
            raise ValueError(f"keep: got {keep!r} without relative scores")
        return self.relative >= self.keep_scale.least(keep)

    @property
    def _shown_scores(self) -> NDArray[np.float64]:
        """The scores that passages have, and that ``threshold`` cuts at: (n,)."""
        if self.shows_relative and self.relative is not None:
            return self.relative
        return self.scores

    def _sentence_texts(self) -> list[str]:
        texts = []
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            texts.append(self._shown(start, end))
        return texts

    def _shown(self, start: int, end: int) -> str:
        return shown_text(self.text, self.document, start, end)

    def _within_budget(
        self,
        picks: NDArray[np.int64],
        selection: Selection,
        max_tokens: int,
        count_tokens: CountTokens,
    ) -> list[int]:
        """The picks and neighbours that fit the budget, in document order."""
        budget = TokenBudget(
            self._shown, self.starts, self.ends, self.blocks, max_tokens, count_tokens
        )
        budget.fill(picks.tolist(), selection.context)
        return budget.shrink(
            lambda sentences: self._most_tokens(sentences, selection, count_tokens)
        )

    def _most_tokens(
        self, sentences: list[int], selection: Selection, count_tokens: CountTokens
    ) -> int:
        """The largest token count of all forms that a caller can ask for.

        So all forms select the same sentences.
        """
        joined = set()
        apart = []
        for merge in (False, True):
            for order in get_args(Order):
                form = replace(selection, merge=merge, order=order)
                passages = self._as_passages(sentences, form)
                texts = [passage.text for passage in passages]
                joined.add("\n".join(texts))
            apart.append(sum(map(count_tokens, texts)))
        return max(*map(count_tokens, joined), *apart)

    def _as_passages(
        self, sentences: list[int], selection: Selection
    ) -> tuple[Passage, ...]:
        """Sentences, ascending, as passages.

        With ``selection.merge``, there is one passage for each run of neighbours.
        """
        if selection.merge:
            runs = runs_of(sentences, self.blocks)
        else:
            runs = [(number, number) for number in sentences]
        if selection.order == "score":
            ranked = self._ranked(selection)
            places = np.empty_like(ranked)  # of each sentence
            places[ranked] = np.arange(len(ranked))
            runs.sort(key=lambda run: int(places[run[0] : run[1] + 1].min()))
        return tuple(self._passage(first, last) for first, last in runs)

    def _passage(self, first: int, last: int) -> Passage:
        """The passage from one sentence to another."""
        start = int(self.starts[first])
        end = int(self.ends[last])
        score = float(self._shown_scores[first : last + 1].max())
        passage = Passage(self._shown(start, end), start, end, score)
        return passage if self.document is None else passage.within(self.document)


def _best_of_each_text(
    ranked: NDArray[np.int64], owners: NDArray[np.integer[Any]], n_of_each: int
) -> NDArray[np.int64]:
    """The best sentences of each text, in the order of ``ranked``, (n,)."""
    # Places in the ranking, grouped by text, best first in each.
    by_text = np.argsort(owners[ranked], kind="stable")
    sorted_owners = owners[ranked][by_text]
    first_of_text = np.searchsorted(sorted_owners, sorted_owners)
    place_in_text = np.arange(len(ranked)) - first_of_text
    return ranked[np.sort(by_text[place_in_text < n_of_each])]
