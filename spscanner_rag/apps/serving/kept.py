"""What a server keeps in memory for the requests that follow: a collection's words, a document that was read."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by digest, of at most so many bytes: those that were used longest ago make room. Thread-safe."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = Lock()
        self._values: OrderedDict[str, tuple[T, int]] = OrderedDict()

    def put(self, digest: str, value: T, size: int) -> None:
        """Keep a value of so many bytes; not one that is larger than all may be."""
        if size > self.most_bytes:
            return
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = value, size
            while sum(own for _, own in self._values.values()) > self.most_bytes:
                self._values.popitem(last=False)

    def get(self, digest: str) -> T | None:
        """The value, if it is kept."""
        with self._lock:
            if digest not in self._values:
                return None
            self._values.move_to_end(digest)
            return self._values[digest][0]
