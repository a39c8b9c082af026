"""The interface of everything that scores the units of a text, with progress and cancellation.

The scanner is a `Scorer`, and so is every baseline. Implementing another one needs only
numpy.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.blocks import Block, segment_blocks, turns_of
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:  # a scorer that ignores collections needs no stemmer
    from spscanner_rag.lexical.collection_index import CollectionIndex

Request = tuple[str, str, Sequence[Unit]]
"""A query, a text, and the units of the text to score."""

Progress = Callable[[int, int], None]
"""Called with (tokens done, total tokens known so far)."""

Cancelled = Callable[[], bool]
"""Called between steps of the work; if it returns True, the work stops with
`ScanCancelled`."""


class ScanCancelled(Exception):  # noqa: N818
    """The caller asked to stop, so there is no result."""


def never() -> bool:
    """Return False: the `Cancelled` of work that nobody cancels."""
    return False


def stop_if(cancelled: Cancelled, where: str = "between two forward passes") -> None:
    """Raise `ScanCancelled` if the caller wants to stop."""
    if cancelled():
        raise ScanCancelled(f"cancelled {where}")


def check_query(query: object, name: str = "query") -> str:
    """Return the query; raise ``TypeError`` if it is not a string, ``ValueError`` if it is blank."""
    if not isinstance(query, str):
        raise TypeError(
            f"{name}: got {type(query).__name__}; expected a string (decode bytes"
            " first)"
        )
    if not query.strip():
        raise ValueError(f"{name}: got {query!r:.60}; expected a question or key words")
    return str(query)


@runtime_checkable
class Scorer(Protocol):
    """Anything that scores the units of a text for a query; `Scanner` is one.

    Three more methods are used if a scorer has them: ``score_units_many(requests,
    cancelled=...)`` for several texts at once, ``segment(text)`` to cut a text into
    units (else `SentenceSegmenter` does), and ``count_tokens(text)`` for token budgets.

    A scorer whose scores depend on the words of all texts that are searched has a true
    ``uses_collection``, and takes these words as ``score_units_many(...,
    collection=...)``. Its scores are then comparable between texts; without a
    collection, each text is a collection of its own. A scorer with a true
    ``says_answers`` appends the probability that each text answers the query to the
    list ``score_units_many(..., answers=[])``.

    A scorer that keeps what it computed for a text, for later questions on it, has a
    true ``keeps_texts``.
    """

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        """Score the units of one text.

        Parameters
        ----------
        query : str
            The question; not empty.
        text : str
            The whole document.
        units : sequence of Unit
            Spans of the text in document order, at least one.

        Returns
        -------
        (units,)
            One finite logit for each unit: higher is better, and 0 is a score of 0.5.
        """
        ...


def segment(
    scorer: Scorer | Segmenter, text: str, blocks: Sequence[Block] = ()
) -> list[Unit]:
    """Cut a text into a scorer's own units, or into sentences if it defines none.

    ``blocks`` (`text.blocks.segment_blocks`) only affect sentences: larger units are
    cut from the text alone.
    """
    own: Callable[[str], list[Unit]] | None = getattr(scorer, "segment", None)
    if own is None:
        own, blocks = (
            SentenceSegmenter().for_text(text).segment,
            blocks or turns_of(text),
        )
    if blocks and getattr(scorer, "unit", "sentence") == "sentence":
        return segment_blocks(text, blocks, own)
    return own(text)


def words_together(
    scorer: Scorer, texts: Iterable[Sequence[Unit]], cancelled: Cancelled = never
) -> "CollectionIndex | None":
    """Count the words of texts, given as their units, for `score_batch`.

    None if the scorer ignores them.
    """
    if not getattr(scorer, "uses_collection", False):
        return None
    from spscanner_rag.lexical.collection_index import CollectionIndex

    index = CollectionIndex()
    for number, units in enumerate(texts):
        stop_if(cancelled, f"after the words of {number} texts were counted")
        index.add(str(number), [unit.model_text for unit in units])
    return index


def score_batch(
    scorer: Scorer,
    requests: Sequence[Request],
    cancelled: Cancelled = never,
    collection: "CollectionIndex | None" = None,
    answers: list[float | None] | None = None,
) -> Iterator[NDArray[np.float32]]:
    """Yield the logits of the units of each text.

    ``collection`` has their words, for a scorer that uses them.

    The probability that each text answers, or None if the scorer does not report it, is
    appended to ``answers``. Raises ``ValueError`` unless each unit has one finite
    number, `ScanCancelled` if ``cancelled`` returns True.
    """
    filled = [
        request for request in requests if request[2]
    ]  # a scorer may refuse a text without units
    many: Callable[..., Sequence[NDArray[np.float32]]] | None = getattr(
        scorer, "score_units_many", None
    )
    options: dict[str, object] = {"cancelled": cancelled}
    if collection is not None and getattr(scorer, "uses_collection", False):
        options["collection"] = collection
    said: list[float | None] = []
    says_answers = getattr(scorer, "says_answers", False)
    if says_answers:
        options["answers"] = said
    arrays = many(filled, **options) if many is not None and filled else []
    if many is not None and len(arrays) != len(filled):
        raise ValueError(
            f"{type(scorer).__name__}.score_units_many returned {len(arrays)} arrays"
            f" for {len(filled)} texts; expected one for each"
        )
    scored, probabilities = iter(arrays), iter(said)
    for query, text, units in requests:
        if answers is not None:
            of_empty = 0.0 if says_answers else None
            answers.append(next(probabilities, None) if units else of_empty)
        if not units:
            yield np.zeros(0, np.float32)
        elif many is not None:
            yield checked_logits(scorer, next(scored), len(units))
        else:
            stop_if(cancelled, "between two texts")
            yield checked_logits(
                scorer, scorer.score_units(query, text, units), len(units)
            )


def checked_logits(scorer: Scorer, values: object, n_units: int) -> NDArray[np.float32]:
    """The logits of a text; ``ValueError`` unless there is one finite number for each unit."""
    with np.errstate(
        over="ignore"
    ):  # numbers beyond float32 become infinite, and are refused below
        logits = np.asarray(values, np.float32)
    if logits.shape != (n_units,) or not np.isfinite(logits).all():
        wrong = int((~np.isfinite(logits)).sum())
        raise ValueError(
            f"{type(scorer).__name__}.score_units returned shape {logits.shape} with"
            f" {wrong} values that are not finite, for {n_units} units; expected one"
            " finite number for each"
        )
    return logits
