"""A queue that takes turns between clients, so that one with many requests does not hold up the others."""

from collections import deque
from typing import Generic, Protocol, TypeVar


class Weighted(Protocol):
    """Something that waits: whose it is, and how much there is to read."""

    @property
    def client(self) -> str:
        """Whose it is."""
        ...

    @property
    def characters(self) -> int:
        """How much there is to read."""
        ...


T = TypeVar("T", bound=Weighted)


class FairQueue(Generic[T]):
    """First come, first served for each client, one request of each client after the other. Not thread-safe."""

    def __init__(self) -> None:
        self._of: dict[str, deque[T]] = {}  # in the order of the clients' next turns
        self.characters = 0

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def put(self, item: T) -> None:
        """Add a request at the end of its client's queue."""
        self._of.setdefault(item.client, deque()).append(item)
        self.characters += item.characters

    def take(self, characters: int) -> list[T]:
        """Take requests until they have this many characters; at least one, unless the queue is empty."""
        taken: list[T] = []
        size = 0
        while self._of and (not taken or size < characters):
            client = next(iter(self._of))
            own = self._of.pop(client)
            item = own.popleft()
            if own:
                self._of[client] = own  # behind the other clients
            taken.append(item)
            size += item.characters
        self.characters -= size
        return taken
