"""The scored sentences of one text: which are taken, which fit a token budget, and the passages they make."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.diversity import diverse
from spscanner_rag.results.selection import (
    Order,
    Selection,
    TokenBudget,
    resolve_top_k,
    runs,
    with_neighbours,
)
from spscanner_rag.results.sentences import Passage
from spscanner_rag.text.token_counts import CountTokens, budget_counter


@dataclass(frozen=True, eq=False)
class ScoredSpans:
    """The columns of a `ScanResult` that selection reads: each array (n,), one entry for each sentence."""

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    logits: NDArray[np.float32]
    scores: NDArray[np.float64]
    blocks: NDArray[np.int64] | None

    def picks(self, selection: Selection, owners: NDArray[np.integer[Any]] | None) -> NDArray[np.int64]:
        """Numbers of the sentences taken before budgets, in the order in which they are taken."""
        picks = selection.pick(self.logits, self.scores)
        most_per_owner = None if owners is None else selection.top_k_per_text
        if (selection.diversity == 1 or not len(picks)) and most_per_owner is None:
            return picks
        ranked = replace(selection, top_k=None).pick(self.logits, self.scores)
        if selection.diversity < 1 and len(picks):
            spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
            texts = [self.text[start:end] for start, end in spans]
            most = len(picks)
            return diverse(texts, self.scores, ranked, most, selection.diversity, owners, most_per_owner)
        assert owners is not None
        by_text = np.argsort(owners[ranked], kind="stable")  # grouped by document, best first in each
        sorted_owners = owners[ranked][by_text]
        place = np.arange(len(ranked)) - np.searchsorted(sorted_owners, sorted_owners)
        kept = ranked[np.sort(by_text[place < most_per_owner])]
        return kept[: resolve_top_k(selection.top_k, len(self.logits), self.scores[kept])]

    def checked(self, numbers: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The numbers of sentences that a caller chose; ``ValueError`` or ``IndexError`` for any others."""
        given = np.asarray(numbers)
        whole = given.ndim == 1 and (not given.size or given.dtype.kind in "iu")
        if not whole or len(set(given.tolist())) < given.size:
            raise ValueError(f"numbers: got {numbers!r:.60}; expected indices of sentences, each once")
        picks = given.astype(np.int64)
        if len(picks) and not (picks.min() >= 0 and picks.max() < len(self.logits)):
            raise IndexError(
                f"numbers: got {int(picks.min())} to {int(picks.max())}; expected 0 to {len(self.logits) - 1}"
            )
        return picks

    def taken(
        self, picks: NDArray[np.int64], selection: Selection, own_counter: CountTokens | None
    ) -> tuple[Passage, ...]:
        """The passages of ``picks`` (best first) and of their neighbours, as far as the budget goes."""
        kept = self._filled(picks, selection, own_counter)
        return self._passages(kept, selection.order, selection.merge)

    def _filled(
        self, picks: NDArray[np.int64], selection: Selection, own_counter: CountTokens | None
    ) -> list[int]:
        """Numbers of the sentences that fit, and of their neighbours, ascending."""
        max_tokens, counter = selection.max_tokens, selection.count_tokens
        count = budget_counter(max_tokens, own_counter if counter is None else counter, "this result")
        if max_tokens is None or count is None:
            return with_neighbours(picks, selection.context, len(self.logits), self.blocks)
        budget = TokenBudget(self.text, self.starts, self.ends, max_tokens, count, self.blocks)
        budget.fill(picks.tolist(), selection.context)
        return budget.shrink(lambda kept: self._most_tokens(kept, count))

    def _passages(self, kept: list[int], order: Order, merge: bool) -> tuple[Passage, ...]:
        """Sentences, ascending, as passages; with ``merge``, one passage for each run of neighbours."""
        parts = runs(kept, self.blocks) if merge else [(number, number) for number in kept]
        if order == "score":
            parts.sort(key=lambda part: -float(self.logits[part[0] : part[1] + 1].max()))
        return tuple(
            Passage(self.text[start:end], start, end, float(self.scores[first : last + 1].max()))
            for first, last in parts
            for start, end in [(int(self.starts[first]), int(self.ends[last]))]
        )

    def _most_tokens(self, kept: list[int], count: CountTokens) -> int:
        """The largest count over all forms that a caller can get, so that all forms have the same selection."""
        joined, apart = set(), []
        for merge in (False, True):
            texts = [passage.text for passage in self._passages(kept, "document", merge)]
            by_score = [passage.text for passage in self._passages(kept, "score", merge)]
            joined |= {"\n".join(texts), "\n".join(by_score)}
            apart.append(sum(map(count, texts)))
        return max(*map(count, joined), *apart)
