"""`ScanResult`, what a scan returns: the sentences' logits, and methods that select passages from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results import selection
from spscanner_rag.results.document_score import Aggregation, document_score
from spscanner_rag.results.selection import Order
from spscanner_rag.results.sentences import Passage, ScoredSentence, shortened
from spscanner_rag.text.token_counts import CountTokens, budget_counter


@dataclass(frozen=True, eq=False, repr=False)
class ScanResult:
    """The sentences of one document, scored for one query.

    Parameters
    ----------
    query : str
        The question as it was asked.
    text : str
        The document as it was given; every span indexes this string.
    starts, ends : array of int, shape (n,)
        Spans of the sentences in characters, ascending and disjoint.
    logits : array of float32, shape (n,)
        The scanner's output for each sentence, finite.
    count_tokens : callable, optional
        Counts the tokens of a text, for budgets; a scanner's result counts with its own tokenizer. None, as in a
        result that was pickled: pass ``count_tokens`` to :meth:`select` instead.
    blocks : array of int, shape (n,), optional
        Number of the block that each sentence is in, ascending: neighbours and merged passages
        never cross from one block into the next. None: the document is one block.

    Raises
    ------
    ValueError
        If the arrays differ in length, a span lies outside the text or overlaps the one before, or a logit is not
        finite.
    """

    query: str
    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    logits: NDArray[np.float32]
    count_tokens: CountTokens | None = None
    blocks: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name in ("starts", "ends", "logits", "blocks"):
            if getattr(self, name) is not None:
                dtype = np.float32 if name == "logits" else np.int64
                object.__setattr__(self, name, _frozen(getattr(self, name), dtype))
        _check(self)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Sigmoid of the logits, shape ``(n,)``, float64."""
        return _frozen(selection.sigmoid(self.logits), np.float64)

    @cached_property
    def sentences(self) -> tuple[ScoredSentence, ...]:
        """All sentences in document order, made when first asked for."""
        columns = (values.tolist() for values in (self.starts, self.ends, self.logits, self.scores))
        return tuple(
            ScoredSentence(self.text[start:end], start, end, logit, score)
            for start, end, logit, score in zip(*columns, strict=True)
        )

    def select(
        self,
        top_k: float | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        order: Order = "document",
        merge: bool = False,
    ) -> tuple[Passage, ...]:
        r"""Select the best sentences.

        Sentences are taken from the highest logit down; among equal ones the earlier comes first. Which are
        taken does not depend on ``order`` and ``merge``.

        Parameters
        ----------
        top_k : int, float or None, default 50
            How many sentences at most: an integer of at least 1, or a share of all sentences between 0 and
            1 (rounded up, at least 10 sentences), or None for no limit.
        threshold : float, optional
            The lowest score that is taken, from 0 to 1, inclusive. Neighbours may score lower.
        max_tokens : int, optional
            Token budget for all that is returned. The best sentences come first, then their neighbours:
            those of the best sentence before those of the second best, nearest first. A sentence that does
            not fit is skipped; a neighbour is taken only if it connects to its sentence. The budget holds for the
            passages counted one by one, for the passages joined by line breaks, and for :meth:`context` with the
            same arguments.
        count_tokens : callable or str, optional
            What counts as a token: a callable ``str -> int`` or the name of a tiktoken encoding, such as
            ``"o200k_base"`` (special tokens are read as text). Default: the scanner's tokenizer.
        context : int, default 0
            How many neighbours to add on each side of each sentence, on top of ``top_k``.
        order : {"document", "score"}, default "document"
            ``"document"``, or ``"score"`` for the best first.
        merge : bool, default False
            Make one passage of each run of adjacent sentences, with the white space between them.

        Returns
        -------
        tuple[Passage, ...]
            Empty when no sentence qualifies.

        Raises
        ------
        ValueError
            If an argument is out of range, or ``max_tokens`` is given and nothing counts tokens.
        """
        selection.check_arguments(top_k, threshold, max_tokens, count_tokens, context, order, merge)
        picks = selection.pick(self.logits, self.scores, top_k, threshold)
        return self._passages(self._filled(picks, max_tokens, count_tokens, context), order, merge)

    def passages(
        self,
        numbers: Sequence[int] | NDArray[np.integer[Any]],
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        order: Order = "document",
        merge: bool = False,
    ) -> tuple[Passage, ...]:
        """Return given sentences as passages, where the choice is the caller's.

        Parameters
        ----------
        numbers : sequence of int
            Indices into :attr:`sentences`, best first (which counts under a token budget), each once.
        max_tokens, count_tokens, context, order, merge
            As for :meth:`select`.

        Raises
        ------
        ValueError
            As :meth:`select`.
        IndexError
            If there is no such sentence.
        """
        selection.check_arguments(None, None, max_tokens, count_tokens, context, order, merge)
        given = np.asarray(numbers)
        whole = given.ndim == 1 and (not given.size or given.dtype.kind in "iu")
        if not whole or len(set(given.tolist())) < given.size:
            raise ValueError(f"numbers: got {numbers!r:.60}; expected indices of sentences, each once")
        picks = given.astype(np.int64)
        if len(picks) and not (picks.min() >= 0 and picks.max() < len(self.logits)):
            raise IndexError(
                f"numbers: got {int(picks.min())} to {int(picks.max())}; expected 0 to {len(self.logits) - 1}"
            )
        return self._passages(self._filled(picks, max_tokens, count_tokens, context), order, merge)

    def context(
        self,
        top_k: float | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
    ) -> str:
        r"""Return the selected sentences as one string for a language model.

        They are in document order. Adjacent sentences are separated as in the document, all others by a line break
        ``"\n"``, as in the paper. The arguments and errors are those of :meth:`select`.
        """
        chosen = self.select(top_k, threshold, max_tokens, count_tokens, context, merge=True)
        return "\n".join(passage.text for passage in chosen)

    def document_score(self, aggregation: Aggregation = "max", *, top: int = 3) -> float:
        """One score for the whole document, on the scale of the logits, to rank documents by.

        Scores compare between documents that were scanned for one question as one collection
        (``Scanner.scan_many(..., together=True)``, ``Scanner.rank``). The arguments and errors are those of
        `results.document_score.document_score`.
        """
        return document_score(self.logits, aggregation, top=top)

    def _filled(
        self,
        picks: NDArray[np.int64],
        max_tokens: int | None,
        count_tokens: CountTokens | str | None,
        context: int,
    ) -> list[int]:
        """Numbers of the sentences in ``picks`` (best first) that fit, and of their neighbours, ascending."""
        counter = self.count_tokens if count_tokens is None else count_tokens
        count = budget_counter(max_tokens, counter, "this result")
        if max_tokens is None or count is None:
            return selection.with_neighbours(picks, context, len(self.logits), self.blocks)
        budget = selection.TokenBudget(self.text, self.starts, self.ends, max_tokens, count, self.blocks)
        budget.fill(picks.tolist(), context)
        return budget.shrink(lambda kept: self._most_tokens(kept, count))

    def _most_tokens(self, kept: list[int], count: CountTokens) -> int:
        """The largest count over all forms that a caller can get, so that all forms have the same selection."""
        joined, apart = set(), []
        for merge in (False, True):
            texts = [passage.text for passage in self._passages(kept, "document", merge)]
            by_score = [passage.text for passage in self._passages(kept, "score", merge)]
            joined |= {"\n".join(texts), "\n".join(by_score)}
            apart.append(sum(map(count, texts)))
        return max(*map(count, joined), *apart)

    def _passages(self, kept: list[int], order: Order, merge: bool) -> tuple[Passage, ...]:
        parts = selection.runs(kept, self.blocks) if merge else [(number, number) for number in kept]
        if order == "score":
            parts.sort(key=lambda part: -float(self.logits[part[0] : part[1] + 1].max()))
        return tuple(
            Passage(self.text[start:end], start, end, float(self.scores[first : last + 1].max()))
            for first, last in parts
            for start, end in [(int(self.starts[first]), int(self.ends[last]))]
        )

    def __reduce__(self) -> tuple[type["ScanResult"], tuple[object, ...]]:
        # Without cached properties, and without the counter, which may hold a whole scanner.
        return ScanResult, (self.query, self.text, self.starts, self.ends, self.logits, None, self.blocks)

    def __copy__(self) -> "ScanResult":
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, object]) -> "ScanResult":
        return self

    def __repr__(self) -> str:
        best = f", best score={self.scores.max():.4g}" if len(self.scores) else ""
        return (
            f"ScanResult(query={shortened(self.query)}, characters={len(self.text)}, "
            f"sentences={len(self.logits)}{best})"
        )


def _frozen(values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def _check(result: ScanResult) -> None:
    starts, ends, logits, blocks = result.starts, result.ends, result.logits, result.blocks
    shapes = (starts.shape, ends.shape, logits.shape)
    if starts.ndim != 1 or len(set(shapes)) != 1:
        raise ValueError(f"starts, ends, logits: got shapes {shapes}; expected one value each per sentence")
    bounds = np.column_stack([starts, ends]).ravel()
    inside = len(bounds) == 0 or (bounds[0] >= 0 and bounds[-1] <= len(result.text))
    if not inside or (starts >= ends).any() or (starts[1:] < ends[:-1]).any():
        raise ValueError(
            f"starts, ends: got spans that overlap, are empty or leave the text of {len(result.text)} characters; "
            "expected ascending, disjoint spans of the document that was scanned"
        )
    if not np.isfinite(logits).all():
        raise ValueError(
            f"logits: got {int((~np.isfinite(logits)).sum())} values that are not finite; expected numbers: "
            'check the checkpoint, or scan with dtype="float32"'
        )
    if blocks is not None and (blocks.shape != logits.shape or (blocks[1:] < blocks[:-1]).any()):
        raise ValueError(
            f"blocks: got shape {blocks.shape} for {len(logits)} sentences; expected one number for each, none "
            "smaller than the one before"
        )
