"""Spreads requests over time, so that a provider's limit is kept."""

import threading
import time
from collections.abc import Callable


class Pace:
    """Lets requests through at a steady rate. Thread-safe.

    Parameters
    ----------
    per_minute : float, optional
        Most requests a minute; default: no limit.
    clock : callable, default time.monotonic
        Gives seconds.

    Raises
    ------
    ValueError
        For a rate that is not above 0.
    """

    def __init__(self, per_minute: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        if per_minute is not None and not 0 < per_minute < float("inf"):
            raise ValueError(f"requests per minute: got {per_minute}; expected a number above 0")
        self._seconds = 60 / per_minute if per_minute else 0.0
        self._clock, self._lock, self._next = clock, threading.Lock(), float("-inf")

    def delay(self) -> float:
        """Take the next turn, and say how many seconds it is away."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._seconds
        return turn - now

    def postpone(self, seconds: float) -> None:
        """No further request before this many seconds: the provider has said that there are too many."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
