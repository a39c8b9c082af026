"""The interface of everything that scores units, with progress and cancellation.

The scanner is a `Scorer`, and so is every baseline. Implementing another one needs only
numpy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.turns import turns_of
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:  # most scorers need neither torch nor a stemmer
    from spscanner_rag.encoder.meaning import Meaning
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
    """Return a query that is a string with a visible character.

    Raises
    ------
    TypeError
        If it is not a string.
    ValueError
        If it is blank.
    """
    if not isinstance(query, str):
        raise TypeError(
            f"{name}: got {type(query).__name__}; expected a string (decode bytes"
            " first)"
        )
    if not query.strip():
        raise ValueError(f"{name}: got {query!r:.60}; expected a question or key words")
    return str(query)


@dataclass(frozen=True, slots=True, eq=False)
class UnitScores:
    """What a scorer says of one text.

    Parameters
    ----------
    logits : array of float32, (units,)
        One finite number for each unit: higher is better, and 0 is a score of 0.5.
    answerable : float or None, optional
        The probability that the text answers the query at all; None if the scorer does
        not estimate it.
    """

    logits: NDArray[np.float32]
    answerable: float | None = None


class Scorer(ABC):
    """Scores the units of a text for a query.

    It is the base class of `Scanner` and of all baselines.

    A subclass defines `score_units`. Everything else has a default, which a subclass
    replaces by an attribute, a property or a method of the same name.

    Examples
    --------
    A scorer that prefers long sentences:

    >>> import numpy as np
    >>> from spscanner_rag.scorers import Scorer, score_batch
    >>> class Lengths(Scorer):
    ...     def score_units(self, query, text, units):
    ...         return np.array([unit.end - unit.start for unit in units], np.float32)
    >>> lengths, text = Lengths(), "Short. This sentence is longer."
    >>> (scores,) = score_batch(lengths, [("Which?", text, lengths.units_of(text))])
    >>> scores.logits.tolist()
    [6.0, 24.0]
    """

    @abstractmethod
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

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        collection: "CollectionIndex | None" = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """Score the units of several texts, each of which has at least one unit.

        The default scores one text after the other.

        Parameters
        ----------
        requests : sequence of (query, text, units)
            What to score.
        collection : CollectionIndex, optional
            The words of all texts that are searched. It is only given to a scorer that
            `uses_collection`. Without it, each text is a collection of its own.
        cancelled : callable, optional
            Called between two texts; True stops the work with `ScanCancelled`.

        Returns
        -------
        list of UnitScores
            One for each request, in order.
        """
        scores = []
        for query, text, units in requests:
            stop_if(cancelled, "between two texts")
            scores.append(UnitScores(self.score_units(query, text, units)))
        return scores

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into the units that this scorer ranks, by default sentences.

        Parameters
        ----------
        text : str
            The whole document.
        blocks : sequence of Block, optional
            Headings, fences and rows of tables, as `spscanner_rag.files.read` finds
            them. They are for sentences alone: larger units are cut from the text.
        """
        segmenter = SentenceSegmenter().for_text(text)
        blocks = blocks or turns_of(text)
        if blocks:
            return segment_blocks(text, blocks, segmenter.segment)
        return segmenter.segment(text)

    @cached_property
    def name(self) -> str:
        """The name in tables and messages.

        By default the class's, in lower case.
        """
        return type(self).__name__.lower()

    @property
    def unit_name(self) -> str | None:
        """What it ranks, such as "sentence" or "chunk:150".

        None if it is unknown.
        """
        return None

    @property
    def segmenter(self) -> Segmenter | None:
        """What cuts sentences as it was trained to read them.

        None if any will do.

        The default is that of the first of its `scorers` that has one.
        """
        for scorer in self.scorers:
            if scorer.segmenter is not None:
                return scorer.segmenter
        return None

    @property
    def count_tokens(self) -> CountTokens | None:
        """Counts tokens for budgets.

        None if it has no tokenizer.

        A subclass may define it as a method, ``count_tokens(text)``.
        """
        return None

    @property
    def uses_collection(self) -> bool:
        """True if scores depend on the words of all texts that are searched.

        Scores of several texts are then comparable only if they had one collection.
        """
        return False

    @property
    def says_answers(self) -> bool:
        """True if it estimates the probability that a text answers the query."""
        return False

    @property
    def keeps_texts(self) -> bool:
        """True if a later question on a text takes less time, as something is kept."""
        return False

    @property
    def meaning(self) -> "Meaning | None":
        """The encoder of sentences and the weights of its cosines.

        None without one.
        """
        return None

    @property
    def scorers(self) -> "tuple[Scorer, ...]":
        """The scorers that this one is made of, if any."""
        return ()

    @property
    def calls_at_once(self) -> int | None:
        """How many asynchronous calls may wait for it.

        None if it computes here.
        """
        return None


def unit_name_of(unit: str | Segmenter) -> str | None:
    """Return the name of units, or of what cuts them.

    None if that has no name.

    The sentences of a published scanner are sentences.

    Examples
    --------
    >>> from spscanner_rag.scorers import unit_name_of
    >>> unit_name_of("chunk:150")
    'chunk:150'
    """
    # A caller's segmenter may have nothing but its method `segment`.
    name = unit if isinstance(unit, str) else getattr(unit, "name", None)
    if name == "reference":
        return "sentence"
    return name if isinstance(name, str) else None


def check_scorer(scorer: object, name: str = "scorer") -> Scorer:
    """Return a scorer, or raise ``TypeError`` if the object is none.

    Examples
    --------
    >>> from spscanner_rag.scorers import check_scorer
    >>> check_scorer("bm25")
    Traceback (most recent call last):
    TypeError: scorer is str; expected a scorer: subclass spscanner_rag.scorers.Scorer \
and define score_units(query, text, units)
    """
    if not isinstance(scorer, Scorer):
        remedy = (
            "subclass spscanner_rag.scorers.Scorer and define"
            " score_units(query, text, units)"
        )
        if isinstance(scorer, type) and issubclass(scorer, Scorer):
            remedy = f"pass an instance, {scorer.__name__}()"
        raise TypeError(
            f"{name} is {type(scorer).__name__}; expected a scorer: {remedy}"
        )
    return scorer


def words_together(
    scorer: Scorer, texts: Iterable[Sequence[Unit]], cancelled: Cancelled = never
) -> "CollectionIndex | None":
    """Count the words of texts, which are the units of each, for `score_batch`.

    None if the scorer ignores them.
    """
    if not scorer.uses_collection:
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
) -> list[UnitScores]:
    """Score the units of each text, and check what the scorer returns.

    Texts without units are not given to the scorer. ``collection`` has the words of all
    texts, for a scorer that uses them.

    Raises
    ------
    ValueError
        Unless each unit has one finite number.
    ScanCancelled
        If ``cancelled`` returned True.
    """
    filled = [request for request in requests if request[2]]
    if collection is not None and not scorer.uses_collection:
        collection = None
    scores: list[UnitScores] = []
    if filled:
        scores = scorer.score_units_many(
            filled, collection=collection, cancelled=cancelled
        )
    if len(scores) != len(filled):
        raise ValueError(
            f"{type(scorer).__name__}.score_units_many returned {len(scores)} results"
            f" for {len(filled)} texts; expected one for each"
        )
    scores_of_filled = iter(scores)
    nothing = UnitScores(np.zeros(0, np.float32), 0.0 if scorer.says_answers else None)
    checked = []
    for _, _, units in requests:
        if units:
            checked.append(checked_scores(scorer, next(scores_of_filled), len(units)))
        else:
            checked.append(nothing)
    return checked


def checked_scores(scorer: Scorer, scores: object, n_units: int) -> UnitScores:
    """Return the scores of a text if each of its units has one finite number."""
    if not isinstance(scores, UnitScores):
        raise TypeError(
            f"{type(scorer).__name__}.score_units_many returned"
            f" {type(scores).__name__} for a text; expected UnitScores(logits)"
        )
    logits = checked_logits(scorer, scores.logits, n_units)
    return UnitScores(logits, scores.answerable)


def checked_logits(scorer: Scorer, values: object, n_units: int) -> NDArray[np.float32]:
    """Return the logits of a text, (units,), if each unit has a finite number."""
    # Numbers beyond float32 become infinite, and are refused below.
    with np.errstate(over="ignore"):
        logits = np.asarray(values, np.float32)
    if logits.shape != (n_units,) or not np.isfinite(logits).all():
        wrong = int((~np.isfinite(logits)).sum())
        raise ValueError(
            f"{type(scorer).__name__}.score_units returned shape {logits.shape} with"
            f" {wrong} values that are not finite, for {n_units} units; expected one"
            " finite number for each"
        )
    return logits
