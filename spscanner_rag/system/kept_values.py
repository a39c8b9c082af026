"""Values that are kept for later questions, all within one bound of memory.

`KeptValues` are those of one owner, such as the prepared texts of a scanner. All owners
of a process share one bound, `$SPSCANNER_KEPT_BYTES`.
"""

import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Hashable
from functools import cache
from itertools import count
from typing import Final, Generic, TypeVar

T = TypeVar("T")

BYTES_VARIABLE: Final = "SPSCANNER_KEPT_BYTES"
"""The environment variable with the most bytes that a process keeps."""

DEFAULT_BYTES: Final = 2**29
"""Most bytes of what is kept for later questions, unless the variable says another."""

_owner_numbers = count()


class KeptBytes:
    """The values of all owners that share a bound, the last used at the end.

    Thread-safe.

    Parameters
    ----------
    most_bytes : int
        The bound. 0 keeps nothing.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.total = 0
        # (owner, key) -> the value and its size
        self._entries: OrderedDict[tuple[int, Hashable], tuple[object, int]]
        self._entries = OrderedDict()
        # Owners that are gone. A garbage collection adds them, and may run while this
        # thread holds the lock.
        self._gone: deque[int] = deque()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock: in a forked child, no thread holds one."""
        self._lock = threading.Lock()

    def put(self, owner: int, key: Hashable, value: object, size: int) -> None:
        """Keep a value of ``size`` bytes, unless it exceeds the bound for all."""
        with self._lock:
            self._forget_gone()
            self._drop((owner, key))
            if size > self.most_bytes:
                return
            self._entries[owner, key] = (value, size)
            self.total += size
            while self.total > self.most_bytes:
                self._drop(next(iter(self._entries)))

    def get(self, owner: int, key: Hashable) -> object | None:
        """Return the value, which is now the last used, or None."""
        with self._lock:
            self._forget_gone()
            entry = self._entries.get((owner, key))
            if entry is None:
                return None
            self._entries.move_to_end((owner, key))
            return entry[0]

    def forget(self, owner: int) -> None:
        """Drop the values of an owner, with the next call."""
        self._gone.append(owner)

    def _forget_gone(self) -> None:
        owners: set[int] = set()
        while self._gone:
            owners.add(self._gone.popleft())
        if not owners:
            return
        for owner, key in list(self._entries):
            if owner in owners:
                self._drop((owner, key))

    def _drop(self, owner_and_key: tuple[int, Hashable]) -> None:
        entry = self._entries.pop(owner_and_key, None)
        if entry is not None:
            self.total -= entry[1]


class KeptValues(Generic[T]):
    """The values of one owner by key.

    The least recently used of all owners are dropped to make room. Thread-safe.

    Parameters
    ----------
    bound : KeptBytes, optional
        Whose bound they are in. Default: the one of the process, `bound_of_process`.

    Examples
    --------
    >>> values = KeptValues[str](KeptBytes(10))
    >>> values.put("a", "first", size=6)
    >>> values.put("b", "second", size=6)
    >>> values.get("a"), values.get("b")
    (None, 'second')
    """

    def __init__(self, bound: KeptBytes | None = None) -> None:
        self.bound = bound_of_process() if bound is None else bound
        self._owner = next(_owner_numbers)
        weakref.finalize(self, self.bound.forget, self._owner)

    def put(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value of ``size`` bytes, unless it exceeds the bound for all."""
        self.bound.put(self._owner, key, value, size)

    def get(self, key: Hashable) -> T | None:
        """Return the value, or None if it is not kept."""
        value: T | None = self.bound.get(self._owner, key)  # type: ignore[assignment]
        return value


@cache
def bound_of_process() -> KeptBytes:
    """The bound that everything in this process shares.

    Raises
    ------
    ValueError
        If the environment variable is not a whole number.
    """
    bound = KeptBytes(_bytes_of_variable())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=bound.renew_lock)
    return bound


def _bytes_of_variable() -> int:
    value = os.environ.get(BYTES_VARIABLE, "").strip()
    if not value:
        return DEFAULT_BYTES
    if not value.isascii() or not value.isdecimal():
        raise ValueError(
            f"{BYTES_VARIABLE} is {value!r:.40}; expected a number of bytes, such as"
            f" {DEFAULT_BYTES}, or 0 to keep nothing"
        )
    return int(value)
