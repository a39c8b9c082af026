"""Scan several texts for one query, and find the best sentences of all of them and where they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results import Passage, ScanResult, selection
from spscanner_rag.results.selection import Order
from spscanner_rag.retrieval.joined_text import RUN_SEPARATOR, JoinedText, Place
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    Scorer,
    check_query,
    never,
    score_batch,
    segment,
    stop_if,
)
from spscanner_rag.text.token_counts import CountTokens, budget_counter
from spscanner_rag.text.units import Unit

_BETWEEN_TEXTS = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which sentences are kept; the arguments of `ScanResult.select`, over all texts together.

    Attributes
    ----------
    top_k, threshold, max_tokens, count_tokens, context, order, merge
        As for `ScanResult.select`. ``"document"`` order is the order of the texts, then that within each.
    top_k_per_text
        At most so many sentences of each text, neighbours not counted. None: no limit.

    Raises
    ------
    ValueError
        For an argument that is out of its range.
    """

    top_k: float | None = 50
    threshold: float | None = None
    max_tokens: int | None = None
    count_tokens: CountTokens | str | None = None
    context: int = 0
    order: Order = "score"
    merge: bool = False
    top_k_per_text: int | None = None

    def __post_init__(self) -> None:
        selection.check_arguments(
            self.top_k,
            self.threshold,
            self.max_tokens,
            self.count_tokens,
            self.context,
            self.order,
            self.merge,
        )
        per_text = self.top_k_per_text
        if per_text is not None and not (selection.is_integer(per_text) and per_text >= 1):
            raise ValueError(
                f"top_k_per_text: got {per_text!r}; expected an integer of at least 1, or None for no limit"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """The selection among the options of a framework class, which has other ``names`` for some fields."""
        try:
            return cls(**{own.name: options[names.get(own.name, own.name)] for own in fields(cls)})
        except ValueError as error:  # it begins with the field's name
            field, colon, rest = str(error).partition(":")
            raise ValueError(f"{names.get(field, field)}{colon}{rest}") from None


class Hit(NamedTuple):
    """A passage that was found, and where it comes from."""

    text: str
    score: float  # its best sentence's: the sigmoid of the logit
    logit: float
    joined: int  # number of the text it stands in
    place: Place


def search(
    scorer: Scorer,
    query: str,
    texts: Sequence[JoinedText],
    choose: Selection,
    *,
    batch_size: int = 64,
    cancelled: Cancelled = never,
) -> list[Hit]:
    """Score the sentences of several texts, ``batch_size`` texts at a time, and keep the best.

    Sentences that touch no piece of a text are read and left out. ``choose`` also says the order of the hits.

    Raises
    ------
    ValueError
        If the query is empty, ``batch_size`` is below 1, or a token budget is given and nothing counts tokens.
    ScanCancelled
        If ``cancelled`` returned True.
    """
    check_query(query)
    check_batch_size(batch_size)
    count_tokens = choose.count_tokens
    if count_tokens is None:
        count_tokens = getattr(scorer, "count_tokens", None)
    counter = budget_counter(choose.max_tokens, count_tokens, type(scorer).__name__)
    pool = _Pool(query, texts, counter)
    for first in range(0, len(texts), batch_size):
        batch = range(first, min(first + batch_size, len(texts)))
        requests: list[Request] = []
        for number in batch:
            stop_if(cancelled, f"before text {number + 1} of {len(texts)}")
            requests.append((query, texts[number].text, _cut(scorer, texts[number])))
        scored = score_batch(scorer, requests, cancelled)
        for number, (_, _, units), logits in zip(batch, requests, scored, strict=True):
            pool.add(number, units, logits)
    return pool.hits(choose)


def check_batch_size(batch_size: object) -> None:
    """Raise ``ValueError`` for anything but an integer of at least 1."""
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"batch_size: got {batch_size!r}; expected an integer of at least 1")


def _cut(scorer: Scorer, joined: JoinedText) -> list[Unit]:
    """Units of each run by itself; what separates two runs is read too, so that no word goes across."""
    if len(joined.runs) == 1:
        return segment(scorer, joined.text)
    units: list[Unit] = []
    stops = [*(run.start for run in joined.runs), len(joined.text)][1:]
    for run, stop in zip(joined.runs, stops, strict=True):
        own = segment(scorer, joined.text[run.start : stop])
        if own and units and not (units[-1].model_text[-1:].isspace() or own[0].model_text[:1].isspace()):
            # The units of the published scanners leave white space out at either end.
            own = [own[0]._replace(model_text=RUN_SEPARATOR + own[0].model_text), *own[1:]]
        units += (Unit(run.start + start, run.start + end, model_text) for start, end, model_text in own)
    return units


class _Pool:
    """The sentences of all texts as those of one, each text and each run in it a block of its own."""

    def __init__(self, query: str, texts: Sequence[JoinedText], count_tokens: CountTokens | None) -> None:
        self.query, self.texts, self.count_tokens = query, texts, count_tokens
        lengths = [len(joined.text) + len(_BETWEEN_TEXTS) for joined in texts]
        self.offsets = np.cumsum([0, *lengths[:-1]])  # of each text in the pool: (texts,)
        self.sentences: list[tuple[int, int, float, int, int]] = []  # start, end, logit, text, block
        self._block = 0

    def add(self, number: int, units: Sequence[Unit], logits: NDArray[np.float32]) -> None:
        """Take over the units of one text, but for those outside its pieces."""
        joined, offset = self.texts[number], int(self.offsets[number])
        run_starts = [run.start for run in joined.runs]
        runs = np.searchsorted(run_starts, [unit.start for unit in units], "right")
        previous: tuple[int, int] | None = None  # number and run of the unit before
        for i, (unit, run, logit) in enumerate(zip(units, runs.tolist(), logits.tolist(), strict=True)):
            if not joined.touches(unit.start, unit.end):
                continue
            self._block += previous != (i - 1, run)
            previous = (i, run)
            self.sentences.append((offset + unit.start, offset + unit.end, logit, number, self._block))

    def hits(self, choose: Selection) -> list[Hit]:
        """The passages that are kept."""
        if not self.sentences:
            return []
        starts, ends, logits, owners, blocks = map(np.array, zip(*self.sentences, strict=True))
        text = _BETWEEN_TEXTS.join(joined.text for joined in self.texts)
        logits = logits.astype(np.float32)
        result = ScanResult(self.query, text, starts, ends, logits, self.count_tokens, blocks)
        picks = _picks(result, owners, choose)
        passages = result.passages(
            picks, choose.max_tokens, context=choose.context, order=choose.order, merge=choose.merge
        )
        return [self._hit(result, passage) for passage in passages]

    def _hit(self, result: ScanResult, passage: Passage) -> Hit:
        number = int(np.searchsorted(self.offsets, passage.start, "right")) - 1
        offset = int(self.offsets[number])
        first, stop = np.searchsorted(result.starts, (passage.start, passage.end))
        logit = float(result.logits[first:stop].max())
        place = self.texts[number].place(passage.start - offset, passage.end - offset)
        return Hit(passage.text, passage.score, logit, number, place)


def _picks(result: ScanResult, owners: NDArray[np.int64], choose: Selection) -> NDArray[np.int64]:
    """Numbers of the sentences within all limits, best first."""
    if choose.top_k_per_text is None:
        return selection.pick(result.logits, result.scores, choose.top_k, choose.threshold)
    ranked = selection.pick(result.logits, result.scores, None, choose.threshold)
    by_text = np.argsort(owners[ranked], kind="stable")  # of each text the best first
    sorted_owners = owners[ranked][by_text]
    place = np.arange(len(ranked)) - np.searchsorted(sorted_owners, sorted_owners)
    kept = np.sort(by_text[place < choose.top_k_per_text])
    return ranked[kept][: selection.resolve_top_k(choose.top_k, len(result.logits))]
