"""`ScanResult`, what a scan returns: the sentences' logits, and methods that select passages from them.

`Together` selects from the results of several documents for one question, and
`rank_results` ranks the documents.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_rag.results.selection import (
    Aggregation,
    AlwaysKeep,
    Order,
    Selection,
    best_first,
    diverse,
    document_score,
    is_integer,
    rank,
    sigmoid,
)
from spscanner_rag.results.sentences import (
    Located,
    Offsets,
    Passage,
    ScoredSentence,
    counted,
    shortened,
    shortened_text,
)
from spscanner_rag.results.token_budget import (
    Blocks,
    TokenBudget,
    runs,
    with_neighbours,
)
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.escaping import escaped
from spscanner_rag.text.token_counts import CountTokens, budget_counter

if TYPE_CHECKING:
    import pandas

_BETWEEN_TEXTS = "\n\n"
_SHOWN_IN_NOTEBOOKS, _SHOWN_CHARACTERS = 10, 500  # sentences, and characters of each


@dataclass(frozen=True, eq=False, repr=False)
class ScanResult:
    """The sentences of one document, scored for one query.

    Parameters
    ----------
    query : str
        The question as it was asked.
    text : str
        The document as it was given; all spans index this string.
    starts, ends : array of int, shape (n,)
        Spans of the sentences in characters, ascending and disjoint.
    logits : array of float32, shape (n,)
        The scanner's output for each sentence, finite.
    count_tokens : callable, optional
        Counts the tokens of a text, for budgets; in a scanner's result it is the
        scanner's tokenizer. If None, as after unpickling, pass ``count_tokens`` to
        :meth:`select` instead.
    blocks : array of int, shape (n,), optional
        Ascending number of each sentence's block. Neighbours and merged passages stay
        in a block. None: one block.
    tokens_read : int, optional
        Tokens of the document that the model read, without the question and its
        repetitions. None: not counted.
    answerable : float, optional
        The probability that some sentence answers the question, from 0 to 1. None if
        the scanner does not report it, as without its own encoder.

    document : optional
        What `spscanner_rag.files.read` returned; passages then have their places in it.

    Raises
    ------
    ValueError
        If the arrays differ in length, a span lies outside the text or overlaps the one
        before, a logit is not finite, or ``tokens_read`` is below 0.
    """

    query: str
    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    logits: NDArray[np.float32]
    count_tokens: CountTokens | None = None
    blocks: NDArray[np.int64] | None = None
    tokens_read: int | None = None
    answerable: float | None = None
    document: Located | None = None

    def __post_init__(self) -> None:
        for name in ("starts", "ends", "logits", "blocks"):
            if getattr(self, name) is not None:
                dtype = np.float32 if name == "logits" else np.int64
                object.__setattr__(self, name, _frozen(getattr(self, name), dtype))
        self._check_arrays()
        if self.tokens_read is not None and not (
            is_integer(self.tokens_read) and self.tokens_read >= 0
        ):
            raise ValueError(
                f"tokens_read: got {self.tokens_read!r}; expected a whole number of at"
                " least 0, or None"
            )

    def _check_arrays(self) -> None:
        starts, ends, logits, blocks = self.starts, self.ends, self.logits, self.blocks
        shapes = (starts.shape, ends.shape, logits.shape)
        if starts.ndim != 1 or len(set(shapes)) != 1:
            raise ValueError(
                f"starts, ends, logits: got shapes {shapes}; expected one value each"
                " per sentence"
            )
        bounds = np.column_stack([starts, ends]).ravel()
        inside = len(bounds) == 0 or (bounds[0] >= 0 and bounds[-1] <= len(self.text))
        if not inside or (np.diff(bounds) < 0).any() or (starts == ends).any():
            raise ValueError(
                "starts, ends: got spans that overlap, are empty or leave the text of"
                f" {len(self.text)} characters; expected ascending, disjoint spans of"
                " the scanned document"
            )
        if not np.isfinite(logits).all():
            raise ValueError(
                f"logits: got {int((~np.isfinite(logits)).sum())} values that are not"
                " finite; expected numbers: check the checkpoint, or scan with"
                ' dtype="float32"'
            )
        if blocks is not None and (
            blocks.shape != logits.shape or (blocks[1:] < blocks[:-1]).any()
        ):
            raise ValueError(
                f"blocks: got shape {blocks.shape} for {len(logits)} sentences;"
                " expected one number for each, none smaller than the one before"
            )

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Sigmoid of the logits, shape ``(n,)``, float64."""
        return _frozen(sigmoid(self.logits), np.float64)

    @property
    def block_of(self) -> Blocks:
        """The block of each sentence: ``blocks``, or zeros if that is None."""
        return (
            np.zeros(len(self.starts), np.int64) if self.blocks is None else self.blocks
        )

    @cached_property
    def sentences(self) -> tuple[ScoredSentence, ...]:
        """All sentences in document order, made on first use."""
        columns = (
            values.tolist()
            for values in (self.starts, self.ends, self.logits, self.scores)
        )
        return tuple(
            ScoredSentence(self.text[start:end], start, end, logit, score)
            for start, end, logit, score in zip(*columns, strict=True)
        )

    def select(
        self,
        top_k: float | str | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        order: Order = "document",
        merge: bool = False,
        diversity: float = 1.0,
        always_keep: AlwaysKeep | None = None,
        require_answer: float | None = None,
    ) -> tuple[Passage, ...]:
        r"""Select the best sentences.

        Sentences are taken from the highest logit down; among equal ones the earlier
        comes first. ``order`` and ``merge`` do not change which ones are taken. The
        result is empty when no sentence qualifies.

        Parameters
        ----------
        top_k : int, float, str or None, default 50
            Maximum number of sentences: an integer of at least 1, or a share of all
            sentences between 0 and 1 (rounded up, at least 10 sentences), or None for
            no limit. "elbow": those before the steepest fall of the sorted scores, from
            1 to 50 sentences; "elbow:5-30" sets other bounds.
        threshold : float, optional
            The lowest score that is taken, from 0 to 1, inclusive. Neighbours may score
            lower.
        max_tokens : int, optional
            Token budget for all that is returned. The best sentences come first, then
            their neighbours: those of the best sentence first, nearest first. A
            sentence that does not fit is skipped; a neighbour is taken only if it
            connects to its sentence. The budget holds for the passages counted one by
            one, for the passages joined by line breaks, and for :meth:`context` with
            the same arguments.
        count_tokens : callable or str, optional
            What counts the tokens: a callable ``str -> int`` or the name of a tiktoken
            encoding, such as ``"o200k_base"`` (special tokens are read as text).
            Default: the scanner's tokenizer.
        context : int, default 0
            How many neighbours to add on each side of each sentence, on top of
            ``top_k``.
        order : {"document", "score"}, default "document"
            ``"score"`` means best first.
        merge : bool, default False
            Make one passage of each run of adjacent sentences, with the white space
            between them.
        diversity : float, default 1.0
            Below 1, sentences that repeat better ones are passed over: the next one
            taken has the highest diversity * score - (1 - diversity) * (highest
            similarity to a sentence already taken), as long as ``top_k`` and
            ``threshold`` allow (maximal marginal relevance; see
            `results.selection.diverse`).
        always_keep : list of str, or callable, optional
            Sentences in which one of these regular expressions is found, or for which
            the function returns true, are also kept, whatever their score, and before
            all others: dates, amounts, identifiers.
        require_answer : float, optional
            The lowest probability that the text answers the query, from 0 to 1, at
            which anything is selected: see ``answerable``.

        Raises
        ------
        ValueError
            If an argument is out of range, if ``max_tokens`` is given and there is no
            token counter, or if ``require_answer`` is given and ``answerable`` is None.
        """
        return self.selected(
            Selection(
                top_k=top_k,
                threshold=threshold,
                max_tokens=max_tokens,
                count_tokens=count_tokens,
                context=context,
                order=order,
                merge=merge,
                diversity=diversity,
                always_keep=always_keep,
                require_answer=require_answer,
            )
        )

    def selected(
        self, selection: Selection, owners: NDArray[np.integer[Any]] | None = None
    ) -> tuple[Passage, ...]:
        """:meth:`select` with its arguments in one object.

        ``owners`` is as for :meth:`picks`.
        """
        return self._taken(self.picks(selection, owners), selection)

    def picks(
        self, selection: Selection, owners: NDArray[np.integer[Any]] | None = None
    ) -> NDArray[np.int64]:
        """Indices of the sentences selected before the budget applies, in the order they are taken: (picks,).

        ``owners``, (n,), has the index of each sentence's text, for
        ``selection.top_k_per_text``.
        """
        if not self.may_answer(selection.require_answer):
            return np.zeros(0, np.int64)
        picks = self._best(selection, owners)
        if selection.always_keep is None:
            return picks
        spans = enumerate(zip(self.starts.tolist(), self.ends.tolist(), strict=True))
        kept = [
            number
            for number, (start, end) in spans
            if selection.keeps(self.text[start:end])
        ]
        first = np.array(kept, np.int64)[rank(self.logits[kept])]
        return np.concatenate([first, picks[~np.isin(picks, first)]])

    def may_answer(self, least_probability: float | None) -> bool:
        """Whether the text answers the query with at least this probability.

        None is no bound. Raises ``ValueError`` for a bound if the probability is not
        known.
        """
        if least_probability is None:
            return True
        if self.answerable is None:
            raise ValueError(
                "require_answer: this result does not have the probability that its"
                " text answers; expected that of a scanner with its own encoder, such"
                " as the bundled one: use that, or threshold instead"
            )
        return self.answerable >= least_probability

    def _best(
        self, selection: Selection, owners: NDArray[np.integer[Any]] | None
    ) -> NDArray[np.int64]:
        ranked = rank(self.logits)
        if owners is not None and selection.top_k_per_text is not None:
            by_text = np.argsort(
                owners[ranked], kind="stable"
            )  # grouped by text, best first in each
            sorted_owners = owners[ranked][by_text]
            place = np.arange(len(ranked)) - np.searchsorted(
                sorted_owners, sorted_owners
            )
            ranked = ranked[np.sort(by_text[place < selection.top_k_per_text])]
        scores = self.scores[ranked]
        high = (
            ranked
            if selection.threshold is None
            else ranked[scores >= selection.threshold]
        )
        picks = high[: selection.limit(len(self.logits), scores)]
        if selection.diversity == 1:
            return picks
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        texts = [self.text[start:end] for start, end in spans]
        return diverse(texts, self.scores, high, len(picks), selection.diversity)

    def _taken(
        self, picks: NDArray[np.int64], selection: Selection
    ) -> tuple[Passage, ...]:
        """The passages of ``picks`` (best first) and of their neighbours, as far as they fit the budget."""
        max_tokens, counter = selection.max_tokens, selection.count_tokens
        count = budget_counter(
            max_tokens, self.count_tokens if counter is None else counter, "this result"
        )
        if max_tokens is None or count is None:
            kept = with_neighbours(picks, selection.context, self.block_of)
        else:
            budget = TokenBudget(
                self.text, self.starts, self.ends, self.block_of, max_tokens, count
            )
            budget.fill(picks.tolist(), selection.context)
            kept = budget.shrink(lambda numbers: self._most_tokens(numbers, count))
        return self._passages(kept, selection.order, selection.merge)

    def _passages(
        self, kept: list[int], order: Order, merge: bool
    ) -> tuple[Passage, ...]:
        """Sentences, ascending, as passages.

        With ``merge``, one passage for each run of neighbours.
        """
        parts = (
            runs(kept, self.blocks) if merge else [(number, number) for number in kept]
        )
        if order == "score":
            parts.sort(
                key=lambda part: -float(self.logits[part[0] : part[1] + 1].max())
            )
        passages = (
            Passage(
                self.text[start:end],
                start,
                end,
                float(self.scores[first : last + 1].max()),
            )
            for first, last in parts
            for start, end in [(int(self.starts[first]), int(self.ends[last]))]
        )
        document = self.document
        return tuple(
            passages
            if document is None
            else (each.within(document) for each in passages)
        )

    def _most_tokens(self, kept: list[int], count: CountTokens) -> int:
        """The largest token count of all forms that a caller can ask for, so that all forms select the same."""
        joined, apart = set(), []
        for merge in (False, True):
            texts = [
                passage.text for passage in self._passages(kept, "document", merge)
            ]
            by_score = [
                passage.text for passage in self._passages(kept, "score", merge)
            ]
            joined |= {"\n".join(texts), "\n".join(by_score)}
            apart.append(sum(map(count, texts)))
        return max(*map(count, joined), *apart)

    def context(
        self,
        top_k: float | str | None = 50,
        threshold: float | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | str | None = None,
        context: int = 0,
        diversity: float = 1.0,
        cite: bool = False,
        always_keep: AlwaysKeep | None = None,
        require_answer: float | None = None,
    ) -> str:
        r"""Return the selected sentences as one string for a language model.

        They are in document order. Adjacent sentences are separated as in the document,
        all others by a line break ``"\n"``, as in the paper. The arguments and errors
        are those of :meth:`select`. With ``cite``, a mark such as " [1]" follows each
        run of sentences, and a list of their places such as "[1] report.pdf, page 12"
        follows the last; ``max_tokens`` counts neither.
        """
        chosen = self.select(
            top_k=top_k,
            threshold=threshold,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            context=context,
            order="document",
            merge=True,
            diversity=diversity,
            always_keep=always_keep,
            require_answer=require_answer,
        )
        if not cite or not chosen:
            return "\n".join(passage.text for passage in chosen)
        marks: dict[str, int] = {}
        cited = "\n".join(
            f"{passage.text} [{marks.setdefault(passage.cite(), len(marks) + 1)}]"
            for passage in chosen
        )
        return "\n".join(
            [cited, "", *(f"[{mark}] {place}" for place, mark in marks.items())]
        )

    def document_score(
        self, aggregation: Aggregation = "max", *, top: int = 3
    ) -> float:
        """One score for the whole document, on the scale of the logits, to rank documents by.

        Scores are comparable between documents that were scanned for one question as
        one collection (``Scanner.scan_many(..., together=True)``, ``Scanner.rank``).
        See `results.selection.document_score`.
        """
        return document_score(self.logits, aggregation, top=top)

    def to_dict(self, offsets: Offsets = "characters") -> dict[str, Any]:
        """Return everything but the document's text, for JSON.

        ``offsets`` is the unit of ``start`` and ``end``.

        "characters" are those of Python, "utf16" the units of JavaScript, Java and C#,
        "bytes" those of UTF-8, as in Rust and Go.

        The keys: ``query``, ``characters`` of the document, ``tokens_read``,
        ``answerable`` (None if unknown) and ``sentences`` in document order, each with
        ``start``, ``end``, ``score``, ``logit`` and ``text``.
        """
        starts, ends = (
            counted(self.text, own, offsets).tolist()
            for own in (self.starts, self.ends)
        )
        return {
            "query": self.query,
            "characters": len(self.text),
            "tokens_read": self.tokens_read,
            "answerable": self.answerable,
            "sentences": [
                {
                    "start": start,
                    "end": end,
                    "score": each.score,
                    "logit": each.logit,
                    "text": each.text,
                }
                for each, start, end in zip(self.sentences, starts, ends, strict=True)
            ],
        }

    def to_json(
        self, indent: int | None = None, offsets: Offsets = "characters"
    ) -> str:
        """:meth:`to_dict` as JSON in ASCII, on one line unless ``indent`` is given."""
        return json.dumps(
            self.to_dict(offsets), indent=indent, ensure_ascii=True, allow_nan=False
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """All sentences as a data frame, one per row, in document order.

        ``ImportError`` without pandas.

        Columns ``text``, ``start``, ``end``, ``logit``, ``score`` and ``rank`` (1 for
        the best).
        """
        pandas = import_extra("pandas", "to_pandas", "pandas")
        texts = [sentence.text for sentence in self.sentences]
        frame = pandas.DataFrame(
            {"start": self.starts, "end": self.ends, "logit": self.logits}
        )
        # As objects: a string column would refuse a lone surrogate where pyarrow is
        # installed.
        frame.insert(0, "text", pandas.Series(texts, dtype=object))
        return frame.assign(score=self.scores, rank=np.argsort(rank(self.logits)) + 1)

    def __reduce__(self) -> tuple[type["ScanResult"], tuple[object, ...]]:
        # Without cached properties, and without the counter, which may hold a whole
        # scanner.
        arrays = self.starts, self.ends, self.logits
        further = self.blocks, self.tokens_read, self.answerable, self.document
        return ScanResult, (self.query, self.text, *arrays, None, *further)

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

    def _repr_html_(self) -> str:
        """The question and the best sentences with their places, for a notebook: short, and without scripts."""

        def shown(text: str) -> str:
            return escaped(shortened_text(text, _SHOWN_CHARACTERS))

        facts = f"{len(self.text):,} characters · {len(self.logits):,} sentences"
        if self.tokens_read is not None:
            facts += f" · {self.tokens_read:,} tokens read"
        best = "".join(
            f'<li dir="auto"><b>{each.score:.3f}</b> {shown(each.text)}'
            f" <i>{shown(each.cite())}</i></li>"
            for each in self.select(_SHOWN_IN_NOTEBOOKS, order="score")
        )
        return (
            '<div style="max-width:60em;overflow-wrap:anywhere"><b'
            f' dir="auto">{shown(self.query)}</b>'
            f"<div>{facts}</div><ol>{best}</ol></div>"
        )


def _frozen(values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


class Together:
    """The results of at least one document, from which sentences are selected as if they were one result.

    Neighbours and merged passages stay within a block of a document. The first result's
    ``count_tokens`` counts.
    """

    def __init__(self, results: Sequence[ScanResult]) -> None:
        self.results = results
        ends = accumulate(
            len(result.text) + len(_BETWEEN_TEXTS) for result in results[:-1]
        )
        self._offsets = [0, *ends]  # where each document begins in the joined text
        self._owners = np.repeat(
            np.arange(len(results)), [len(result.logits) for result in results]
        )
        self.joined = results[0] if len(results) == 1 else self._join(results)

    def _join(self, results: Sequence[ScanResult]) -> ScanResult:
        placed = list(zip(results, self._offsets, strict=True))
        blocks = np.concatenate([result.block_of for result in results])
        begins = (np.diff(blocks, prepend=blocks[:1]) != 0) | (
            np.diff(self._owners, prepend=0) != 0
        )
        return ScanResult(
            results[0].query,
            _BETWEEN_TEXTS.join(result.text for result in results),
            np.concatenate([result.starts + offset for result, offset in placed]),
            np.concatenate([result.ends + offset for result, offset in placed]),
            np.concatenate([result.logits for result in results]),
            results[0].count_tokens,
            np.cumsum(begins),  # a number for each block of each document
        )

    def select(self, selection: Selection) -> list[tuple[int, Passage]]:
        """Pairs of a document's index and a passage.

        ``ValueError`` for a budget without a token counter, and for ``require_answer``
        if a result does not know whether its text answers. Texts below
        ``require_answer`` take part as if they had no sentence.
        """
        if selection.require_answer is not None:
            return self._select_from_answering(selection)
        found = []
        for passage in self.joined.selected(selection, self._owners):
            number = bisect_right(self._offsets, passage.start) - 1
            start, end = (
                passage.start - self._offsets[number],
                passage.end - self._offsets[number],
            )
            found.append((number, replace(passage, start=start, end=end)))
        return found

    def _select_from_answering(self, selection: Selection) -> list[tuple[int, Passage]]:
        results: list[ScanResult] = []
        for result in self.results:
            if not result.may_answer(selection.require_answer):
                result = _without_sentences(result)
            results.append(result)
        return Together(results).select(replace(selection, require_answer=None))


def _without_sentences(result: ScanResult) -> ScanResult:
    return replace(
        result,
        starts=result.starts[:0],
        ends=result.ends[:0],
        logits=result.logits[:0],
        blocks=None,
    )


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document in a ranking: its index among those given, its `ScanResult.document_score`, its sentences."""

    number: int
    logit: float
    result: ScanResult

    @property
    def score(self) -> float:
        """The sigmoid of the logit."""
        return float(sigmoid(np.array(self.logit)))

    @property
    def text(self) -> str:
        """The document."""
        return self.result.text

    def passages(self, top_k: float | str | None = 3) -> tuple[Passage, ...]:
        """Its best sentences, the best first; ``top_k`` is as for `ScanResult.select`."""
        return self.result.select(top_k, order="score")

    def to_dict(self, return_documents: bool = False) -> dict[str, Any]:
        """An item as in sentence-transformers' ``CrossEncoder.rank``.

        ``return_documents`` adds its text.
        """
        item: dict[str, Any] = {"corpus_id": self.number, "score": self.score}
        return item | {"text": self.text} if return_documents else item


def rank_results(
    results: Sequence[ScanResult], aggregation: Aggregation = "max"
) -> list[RankedDocument]:
    """Rank the results of one question, best first.

    Among equal ones the earlier comes first.
    """
    logits = [result.document_score(aggregation) for result in results]
    return [
        RankedDocument(number, logit, results[number])
        for number, logit in best_first(logits)
    ]
