"""The documents that a retriever of any framework holds: counted, chosen for a question, and persisted."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.retrieval.corpus import (
    Corpus,
    estimated_tokens,
    read_corpus,
    write_corpus,
)
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from spscanner_rag.scorers import Cancelled, never

if TYPE_CHECKING:
    from spscanner_rag.encoder.meaning import Meaning

Item = TypeVar("Item")

OwnFirstStage = Literal[
    "bm25", "none"
]  # the first stages that need no retriever of a framework

ReadTokens = int | Literal["auto"] | None

READ_TOKENS, READ_TOKENS_ON_CPU = 200_000, 100_000
"""Maximum read for a question, on an accelerator and on a CPU, where 2 cores take 5
to 15 seconds for it."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """How much is read for one question: integers of at least 1, else ``ValueError``.

    None means no bound.

    A text that would exceed ``read_tokens`` is left out, except the first. "auto"
    depends on the device; see `on`.
    """

    read_documents: int | None = 10
    read_tokens: ReadTokens = "auto"

    def __post_init__(self) -> None:
        for name, automatic in (("read_documents", ()), ("read_tokens", ("auto",))):
            value = getattr(self, name)
            if (
                value is not None
                and value not in automatic
                and (type(value) is not int or value < 1)
            ):
                also = '"auto", ' if automatic else ""
                raise ValueError(
                    f"{name}: got {value!r}; expected an integer of at least 1,"
                    f" {also}or None for no bound"
                )

    def on(self, choice: ScorerChoice) -> "ReadBounds":
        """Return the bounds with "auto" resolved if the scorer runs on a CPU."""
        on_cpu = self.read_tokens == "auto" and choice.on_cpu
        return replace(self, read_tokens=READ_TOKENS_ON_CPU) if on_cpu else self

    def kept(self, tokens: Iterable[int]) -> list[int]:
        """Indices of the texts to read, given the tokens of each in the order of the first stage."""
        kept: list[int] = []
        total = left_out = 0
        most = READ_TOKENS if self.read_tokens == "auto" else self.read_tokens
        for number, n_tokens in enumerate(tokens):
            if self.read_documents is not None and len(kept) == self.read_documents:
                break
            if kept and most is not None and total + n_tokens > most:
                left_out += 1
                continue
            kept.append(number)
            total += n_tokens
        if left_out:
            _LOGGER.info(
                "read_tokens: %d documents of %d tokens are read, %d are left out",
                len(kept),
                total,
                left_out,
            )
        return kept


@dataclass(frozen=True, slots=True)
class ReadText(Generic[Item]):
    """A text to read, and the objects that its pieces come from."""

    joined: JoinedText
    items: Sequence[Item]  # the framework's object of each piece, by the piece's number
    score: float | None = None  # the first stage's score of the text; None without one


class Host(ABC, Generic[Item]):
    """What a `HeldCorpus` must know about a framework's documents.

    Immutable, and pickled with the corpus.
    """

    framework: ClassVar[str]  # written to the folder of a persisted corpus
    items_name: ClassVar[str]  # for errors: a first stage returns a list of these

    @abstractmethod
    def key(self, item: Item) -> str:
        """Return the id of an item; an item added later with the same id replaces it."""

    def document(self, item: Item) -> str:
        """Return the id of the document that an item belongs to.

        Items are deleted by it.
        """
        return self.key(item)

    @abstractmethod
    def join(self, items: Sequence[Item]) -> list[ReadText[Item]]:
        """Join held items to texts."""

    @abstractmethod
    def finder(
        self, items: Sequence[Item], texts: Sequence[ReadText[Item]]
    ) -> Callable[[Item], int | None]:
        """Return a function from a found item to the index of the held text that contains it, or None."""

    def read(self, found: Sequence[Item]) -> list[ReadText[Item]]:
        """Join found items that no held text contains."""
        return self.join(found)

    @abstractmethod
    def score(self, found: Sequence[Item]) -> float | None:
        """Return the score of a text, given those of its items that a first stage found, in its order."""

    def without(self, ids: Collection[str]) -> Self:
        """Return the host after these documents were deleted."""
        return self

    @abstractmethod
    def records(self, items: Sequence[Item]) -> Iterable[Mapping[str, Any]]:
        """Return everything that is persisted, as objects of JSON values."""

    @abstractmethod
    def restored(
        self, records: Sequence[Mapping[str, Any]]
    ) -> tuple[Self, Sequence[Item]]:
        """Return a host like this one, and the items, from `records`."""


class HeldCorpus(Generic[Item]):
    """The documents of a retriever at one moment.

    Immutable: a question keeps the corpus that it began with.

    Documents are joined to texts, and counted unless ``counts`` has them, when a
    question or `persist` needs it.
    """

    changing: ClassVar = (
        threading.Lock()
    )  # held by a retriever while it replaces its corpus

    def __init__(
        self, host: Host[Item], items: Iterable[Item] = (), counts: Corpus | None = None
    ) -> None:
        self.host = host
        self.items = items if isinstance(items, tuple) else tuple(items)
        self._owners = tuple(map(host.document, self.items))
        self._counts = Corpus() if counts is None else counts
        self._texts: list[ReadText[Item]] | None = None
        self._find: Callable[[Item], int | None] | None = None
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: str | Path, host: Host[Item]) -> Self:
        """Read what `persist` wrote.

        ``ValueError`` if the folder is missing, damaged or of another kind.
        """
        records, counts = read_corpus(path, host.framework)
        try:
            return cls(*host.restored(records), counts)
        except (
            ValueError,
            TypeError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ValueError(
                f"{path}: got documents that are not {host.framework}'s"
                f" ({type(error).__name__}: {error!s:.200}); expected those that"
                " persist(path) wrote: persist them again"
            ) from error

    def persist(
        self, path: str | Path, meaning: "Callable[[], Meaning | None]" = lambda: None
    ) -> None:
        """Write everything to a folder (`write_corpus`), with all vectors if ``meaning`` returns a `Meaning`."""
        records, (texts, corpus) = list(self.host.records(self.items)), self.counted()
        if (known := meaning()) is not None:
            corpus.encoded(known, range(len(texts)))
        write_corpus(path, self.host.framework, records, corpus)

    @property
    def ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return list(dict.fromkeys(self._owners))

    def adding(self, items: Iterable[Item]) -> Self:
        """Return the corpus with more items.

        One with a known id replaces the earlier one.
        """
        kept = {self.host.key(item): item for item in (*self.items, *items)}
        return type(self)(self.host, kept.values(), self._counts)

    def deleting(self, ids: str | Iterable[str]) -> Self:
        """Return the corpus without these documents.

        ``ValueError`` if one of them is not held.
        """
        gone = {ids} if isinstance(ids, str) else set(ids)
        unknown = sorted(map(str, gone.difference(self._owners)))
        if unknown:
            raise ValueError(
                f"ids: no document {unknown[0]!r} here; expected ids among the"
                f" {len(self.ids)} held"
            )
        kept = [name not in gone for name in self._owners]
        return type(self)(
            self.host.without(gone), compress(self.items, kept), self._counts
        )

    def replaced(self, host: Host[Item], items: tuple[Item, ...]) -> Self:
        """Return the corpus of other items.

        Those that are already held are not counted again.
        """
        return type(self)(host, items, self._counts)

    def counted(self) -> tuple[list[ReadText[Item]], Corpus]:
        """Return all texts and the counts of their words."""
        with self._lock:
            if self._texts is None:
                texts = self.host.join(self.items)
                self._counts = self._counts.with_texts([text.joined for text in texts])
                self._texts = texts
            return self._texts, self._counts

    def read(
        self,
        query: str,
        first_stage: object,
        bounds: ReadBounds,
        admits: Callable[[Item], bool] | None = None,
        found: object = None,
        meaning: "Callable[[], Meaning | None]" = lambda: None,
        cancelled: Cancelled = never,
    ) -> list[ReadText[Item]]:
        """Choose the texts to read for a query.

        ``first_stage`` "none": all texts, whatever the bounds; "bm25": the best by
        `choose_texts`; anything else: the held texts that contain what it ``found``,
        and found items that none contains, in its order. Sentences of items that
        ``admits`` refuses are read but not selected; texts without any other item are
        left out. ``meaning`` returns the scorer's `Meaning`, or None; it is called only
        if texts must be chosen, or have vectors. Raises ``TypeError`` if ``found`` is
        not what the framework's first stages return.
        """
        texts, corpus = self.counted()
        if not isinstance(first_stage, str):
            if not isinstance(found, Sequence) or isinstance(found, str):
                raise TypeError(
                    f"the first stage returned {type(found).__name__}; expected a list"
                    f" of {self.host.items_name}"
                )
            ranked = list(_admitted(self._found(found), admits).values())
            kept = bounds.kept(estimated_tokens(text.joined.text) for text in ranked)
            return [ranked[number] for number in kept]
        admitted = _admitted(texts, admits)
        if first_stage == "none":
            chosen: list[tuple[int, float | None]] = [
                (number, None) for number in admitted
            ]
        else:
            chosen = choose_texts(
                corpus, query, bounds, list(admitted), meaning, cancelled
            )
        if corpus.vectors and (known := meaning()) is not None:
            corpus.encoded(
                known,
                [number for number, _ in chosen if corpus.knows(number, known)],
                cancelled,
            )
        return [replace(admitted[number], score=score) for number, score in chosen]

    def _found(self, found: Sequence[Item]) -> list[ReadText[Item]]:
        """The held texts with found items, and texts made of the other items, each by its first found item."""
        texts, _ = self.counted()
        with self._lock:
            if self._find is None:
                self._find = self.host.finder(self.items, texts)
        held: dict[int, list[int]] = {}
        loose: list[int] = []
        for rank, item in enumerate(found):
            number = self._find(item)
            (loose if number is None else held.setdefault(number, [])).append(rank)
        if loose and texts and not held:
            _LOGGER.warning(
                "nothing found belongs to the %d documents: it is read alone",
                len(texts),
            )
        ranked = [
            (
                ranks[0],
                replace(
                    texts[number],
                    score=self.host.score([found[rank] for rank in ranks]),
                ),
            )
            for number, ranks in held.items()
        ]
        for text in self.host.read([found[rank] for rank in loose]):
            own = {
                self.host.key(text.items[placed.number])
                for placed in text.joined.placed
            }
            first = next(
                (rank for rank in loose if self.host.key(found[rank]) in own), None
            )
            if first is not None:
                ranked.append((first, text))
        return [text for _, text in sorted(ranked, key=lambda pair: pair[0])]

    def __reduce__(self) -> tuple[type["HeldCorpus[Item]"], tuple[object, ...]]:
        return type(self), (self.host, self.items, self._counts)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # immutable


def choose_texts(
    corpus: Corpus,
    query: str,
    bounds: ReadBounds,
    among: Sequence[int] | None = None,
    meaning: "Callable[[], Meaning | None]" = lambda: None,
    cancelled: Cancelled = never,
) -> list[tuple[int, float | None]]:
    """Indices of the texts to read for a query, from all or ``among`` some, in corpus order, with their scores.

    If the bounds admit all texts, none has a score. Otherwise
    `CollectionIndex.best_texts` ranks them; those without a word of the query come
    last, without a score. If the scorer has an encoder, the score is the sum of that
    score and of the best sentence's meaning, both standardized.
    """
    candidates = range(len(corpus.texts)) if among is None else among
    filled = [number for number in candidates if corpus.tokens[number]]
    if len(bounds.kept(corpus.tokens[number] for number in filled)) == len(filled):
        return [(number, None) for number in filled]
    admitted = set(filled)
    scores = {
        number: score for number, score in corpus.ranked(query) if number in admitted
    }
    if (known := meaning()) is not None:
        lowest = min(scores.values(), default=0.0) - 1.0
        lexical = _standardized([scores.get(number, lowest) for number in filled])
        meant = _standardized(
            list(corpus.meant(query, known, filled, cancelled).values())
        )
        both = sorted(
            zip((lexical + meant).tolist(), filled, strict=True),
            key=lambda pair: -pair[0],
        )
        scores = {number: score for score, number in both}
    ranking = [*scores, *(number for number in filled if number not in scores)]
    kept = sorted(
        ranking[place]
        for place in bounds.kept(corpus.tokens[number] for number in ranking)
    )
    return [(number, scores.get(number)) for number in kept]


def _standardized(values: Sequence[float]) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    return np.asarray((scores - scores.mean()) / max(float(scores.std()), 1e-9))


def _admitted(
    texts: Sequence[ReadText[Item]], admits: Callable[[Item], bool] | None
) -> dict[int, ReadText[Item]]:
    """Texts by index, with only the pieces that a filter admits.

    Their scores do not change.
    """
    admitted = {}
    for number, text in enumerate(texts):
        placed = text.joined.placed
        if admits is not None:
            placed = tuple(
                piece for piece in placed if admits(text.items[piece.number])
            )
            if not placed:
                continue
        same = len(placed) == len(text.joined.placed)
        admitted[number] = (
            text if same else replace(text, joined=replace(text.joined, placed=placed))
        )
    return admitted
