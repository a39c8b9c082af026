"""Values that are kept for later requests, within a bound of memory."""

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptValues(Generic[T]):
    """Values by digest, of at most so many bytes.

    The least recently used are dropped. Thread-safe.

    Examples
    --------
    >>> values = KeptValues[str](most_bytes=10)
    >>> values.put("a", "first", size=6)
    >>> values.put("b", "second", size=6)
    >>> values.get("a"), values.get("b")
    (None, 'second')
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        # in order of last use, each with its size
        self._values: dict[str, tuple[T, int]] = {}

    def put(self, digest: str, value: T, size: int) -> None:
        """Keep a value of ``size`` bytes, unless it exceeds the limit for all."""
        if size > self.most_bytes:
            return
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = (value, size)
            while sum(size for _, size in self._values.values()) > self.most_bytes:
                del self._values[next(iter(self._values))]

    def get(self, digest: str) -> T | None:
        """Return the value, or None if it is not kept."""
        with self._lock:
            if digest not in self._values:
                return None
            value_and_size = self._values.pop(digest)
            self._values[digest] = value_and_size
            return value_and_size[0]
