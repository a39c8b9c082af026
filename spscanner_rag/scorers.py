"""The interface of everything that scores units, with progress and cancellation.

The scanner is a `Scorer`, and so is every baseline. Implementing another one needs only
numpy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.keep_scale import KeepScale
from spscanner_rag.text.text_units import units_of_text
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:  # most scorers need neither torch nor a stemmer
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors
    from spscanner_rag.lexical.collection_index import CollectionIndex
    from spscanner_rag.lexical.words import TextWords

Request = tuple[str, str, Sequence[Unit]]
"""A query, a text, and the units of the text to score."""

Progress = Callable[[int, int], None]
"""Called with (tokens done, total tokens known so far)."""

Read = Literal["auto", "all"] | float
"""What a token reader reads of a text: everything, a share of its tokens from 0 to 1,
or "auto", what loses nothing; see `Scanner.scan`."""

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


def check_read(read: object) -> Read:
    """Return the option ``read``, or raise an error that says what is expected.

    Raises
    ------
    TypeError
        If it is neither a string nor a number.
    ValueError
        For another string, or a number that is not from 0 to 1.

    Examples
    --------
    >>> from spscanner_rag.scorers import check_read
    >>> check_read(0.2)
    0.2
    >>> check_read("half")
    Traceback (most recent call last):
    ValueError: read: got 'half'; expected "auto", "all" or a share from 0 to 1
    """
    expected = 'expected "auto", "all" or a share from 0 to 1'
    if isinstance(read, str):
        if read == "auto":
            return "auto"
        if read == "all":
            return "all"
        raise ValueError(f"read: got {read!r:.60}; {expected}")
    if type(read) not in (int, float):
        raise TypeError(f"read: got {type(read).__name__}; {expected}")
    assert isinstance(read, int | float)
    if not 0 <= read <= 1:
        # Python refuses to write out an integer of thousands of digits
        is_long = isinstance(read, int) and read.bit_length() > 200
        shown = "a number of many digits" if is_long else repr(read)
        raise ValueError(f"read: got {shown}; {expected}")
    return float(read)


def refuse_share(read: Read, source: str) -> None:
    """Raise ``ValueError`` for a share, of a scorer without a sentence scan.

    ``source`` is the name of the scorer or its checkpoint.
    """
    if isinstance(read, float) and read < 1:
        raise ValueError(
            f"read: got {read:g} for {source}, which has no sentence scan to choose"
            ' what is read; expected "auto" or "all"'
        )


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


class PreparedText(Protocol):
    """A text with what a scorer needs again for the next query on it.

    `Scorer.prepare` makes it, for that scorer alone. It never changes.
    """

    @property
    def text(self) -> str:
        """The whole text."""
        ...

    @property
    def units(self) -> Sequence[Unit]:
        """What gets a score, in the order of the text."""
        ...

    @property
    def words(self) -> "TextWords":
        """The words of the units."""
        ...

    @property
    def vectors(self) -> "SentenceVectors | None":
        """The vector of every unit, if the scorer has an encoder."""
        ...

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes, its text included."""
        ...


_UNIT_BYTES = 200  # of memory, without its text


@dataclass(frozen=True, eq=False)
class CutText:
    """A text that is only cut into units, which is all that most scorers prepare.

    Parameters
    ----------
    text : str
        The whole text.
    units : sequence of Unit
        What gets a score, in the order of the text.

    Examples
    --------
    >>> from spscanner_rag.scorers import CutText
    >>> from spscanner_rag.text.units import Unit
    >>> CutText("It rained.", [Unit(0, 10, "It rained.")]).words.vocabulary
    ['it', 'rained']
    """

    text: str
    units: Sequence[Unit]

    @property
    def words(self) -> "TextWords":
        """The words of the units, indexed at each call."""
        from spscanner_rag.lexical.words import index_words

        return index_words([unit.model_text for unit in self.units])

    @property
    def vectors(self) -> "SentenceVectors | None":
        """None: nothing is encoded."""
        return None

    @cached_property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes, its text included."""
        total = getsizeof(self.text) + _UNIT_BYTES * len(self.units)
        return total + sum(getsizeof(unit.model_text) for unit in self.units)


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

    def prepare(
        self,
        text: str,
        *,
        units: Sequence[Unit] | None = None,
        cancelled: Cancelled | None = None,
    ) -> PreparedText:
        """Prepare a text for any number of queries.

        The default cuts it into units, unless there are ``units``, and does no more.
        What it returns is for `score_prepared` of this scorer. A scorer whose prepared
        texts hold more can also write them to a folder, with `preparation`,
        `arrays_of` and `restore`.

        Parameters
        ----------
        text : str
            The whole document.
        units : sequence of Unit, optional
            What gets a score. Default: those of `units_of`.
        cancelled : callable, optional
            Called between steps; True stops the work with `ScanCancelled`.

        Examples
        --------
        >>> from spscanner_rag.baselines.bm25 import BM25
        >>> bm25 = BM25()
        >>> log = bm25.prepare("Ships came every week. Ann signed the treaty.")
        >>> for query in ("Which ships?", "Who signed?"):
        ...     (scores,) = bm25.score_prepared(query, [log])
        ...     print(log.units[scores.logits.argmax()].model_text.strip())
        Ships came every week.
        Ann signed the treaty.
        """
        return CutText(text, self.units_of(text) if units is None else units)

    def score_prepared(
        self,
        query: str,
        texts: Sequence[PreparedText],
        *,
        collection: "CollectionIndex | None" = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """Score the units of texts that were prepared, each of at least one unit.

        The scores are those of `score_units_many`, which the default calls, as are
        ``collection`` and ``cancelled``.

        Parameters
        ----------
        query : str
            The question; not empty.
        texts : sequence of PreparedText
            What `prepare` returned for each text.
        """
        requests = [(query, text.text, text.units) for text in texts]
        return self.score_units_many(
            requests, collection=collection, cancelled=cancelled
        )

    def with_read(self, read: Read) -> Self:
        """Return this scorer with another option ``read`` for the texts that it scores.

        Parameters
        ----------
        read : "auto", "all" or float
            As for `Scanner.scan`. A scorer without a sentence scan reads everything.

        Raises
        ------
        ValueError, TypeError
            For another value, or a share if there is no sentence scan.
        """
        refuse_share(check_read(read), type(self).__name__)
        return self

    @property
    def prepares_for(self) -> object:
        """The object that prepared texts are kept for, and dropped with.

        Scorers with the same one take each other's. The default is the scorer itself.
        """
        return self

    @property
    def preparation(self) -> str | None:
        """A digest of everything that decides what `prepare` makes of a text.

        None if prepared texts are not worth keeping in a folder.
        """
        return None

    def arrays_of(self, prepared: PreparedText) -> dict[str, NDArray[Any]]:
        """Return what a folder keeps of a prepared text, without text and vectors.

        Each array has one dimension, and for all texts the same names and types.
        It is called only if there is a `preparation`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has a preparation but no arrays_of"
        )

    def restore(
        self,
        text: str,
        arrays: Mapping[str, NDArray[Any]],
        vectors: "SentenceVectors | None" = None,
    ) -> PreparedText:
        """Return the prepared text that `arrays_of` was called with.

        Parameters
        ----------
        text : str
            The whole document.
        arrays : mapping
            What `arrays_of` returned for it, by a scorer with this `preparation`.
        vectors : SentenceVectors, optional
            Those of its units, if the scorer has an encoder.

        Raises
        ------
        ValueError
            For arrays that do not fit together, or do not fit the text.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has a preparation but no restore"
        )

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
        return units_of_text(text, blocks)

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
    def keep_scale(self) -> KeepScale | None:
        """What turns its logits into scores to cut at.

        None if it was never fitted: presets of ``keep`` are then refused.
        """
        return None

    @property
    def keeps_texts(self) -> bool:
        """True if a later question on a text takes less time, as something is kept.

        It is kept by the scorer, or in what `prepare` returned.
        """
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
    return _checked_batch(scorer, scores, [len(units) for _, _, units in requests])


def score_prepared_batch(
    scorer: Scorer,
    query: str,
    texts: Sequence[PreparedText],
    cancelled: Cancelled = never,
    collection: "CollectionIndex | None" = None,
) -> list[UnitScores]:
    """Do as `score_batch`, on texts that the scorer has prepared.

    Examples
    --------
    >>> from spscanner_rag.baselines.bm25 import BM25
    >>> from spscanner_rag.scorers import score_prepared_batch
    >>> bm25 = BM25()
    >>> texts = [bm25.prepare("Ann signed the treaty. It rained."), bm25.prepare("")]
    >>> scores = score_prepared_batch(bm25, "Who signed?", texts)
    >>> [len(scores_of_text.logits) for scores_of_text in scores]
    [2, 0]
    """
    filled = [text for text in texts if text.units]
    if collection is not None and not scorer.uses_collection:
        collection = None
    scores: list[UnitScores] = []
    if filled:
        scores = scorer.score_prepared(
            query, filled, collection=collection, cancelled=cancelled
        )
    return _checked_batch(scorer, scores, [len(text.units) for text in texts])


def _checked_batch(
    scorer: Scorer, scores: Sequence[object], unit_counts: Sequence[int]
) -> list[UnitScores]:
    """The scores of all texts, from those of the texts that have units."""
    n_filled = sum(1 for n_units in unit_counts if n_units)
    if len(scores) != n_filled:
        raise ValueError(
            f"{type(scorer).__name__}.score_units_many returned {len(scores)} results"
            f" for {n_filled} texts; expected one for each"
        )
    scores_of_filled = iter(scores)
    nothing = UnitScores(np.zeros(0, np.float32), 0.0 if scorer.says_answers else None)
    checked = []
    for n_units in unit_counts:
        if n_units:
            checked.append(checked_scores(scorer, next(scores_of_filled), n_units))
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
