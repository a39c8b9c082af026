"""What a corpus must know about the documents of a framework."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from spscanner_rag.retrieval.joined_text import JoinedText

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class ReadText(Generic[Item]):
    """A text to read, and the objects that its pieces come from.

    Parameters
    ----------
    joined : JoinedText
        The text.
    items : sequence
        The framework's object of each piece, by the piece's number.
    score : float, optional
        The first stage's score of the text.
    """

    joined: JoinedText
    items: Sequence[Item]
    score: float | None = None


class Host(ABC, Generic[Item]):
    """What a `HeldCorpus` must know about a framework's documents.

    An item is the framework's object: a document, or a piece of one. A host is
    immutable, and pickled with the corpus.
    """

    framework: ClassVar[str]
    """The framework's name in the folder of a persisted corpus."""

    items_name: ClassVar[str]
    """What errors call the items that a first stage returns."""

    @abstractmethod
    def key(self, item: Item) -> str:
        """Return the id of an item.

        An item that is added later with the same id replaces it.
        """

    def document(self, item: Item) -> str:
        """Return the id of the document that an item belongs to.

        Items are deleted by it.
        """
        return self.key(item)

    @abstractmethod
    def join(self, items: Sequence[Item]) -> list[ReadText[Item]]:
        """Join the items of a corpus to texts."""

    @abstractmethod
    def finder(
        self, items: Sequence[Item], texts: Sequence[ReadText[Item]]
    ) -> Callable[[Item], int | None]:
        """Return a function that finds the text of a corpus that contains an item.

        It takes an item of a first stage, and returns the index of the text or None.
        """

    def join_found(self, items: Sequence[Item]) -> list[ReadText[Item]]:
        """Join items of a first stage that no text of the corpus contains."""
        return self.join(items)

    @abstractmethod
    def score(self, items: Sequence[Item]) -> float | None:
        """Return the score of a text, from its items that a first stage returned.

        They are in the first stage's order.
        """

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
