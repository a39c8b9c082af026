"""Turns at the model: one forward pass at a time, alternately for short and for long work."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Kind = Literal["short", "long"]


SLICE_SECONDS = 0.02
"""A turn is not passed on earlier: preparing a short text must not cost it a turn of its own."""


class Turns:
    """Lets one thread use the model at a time.

    A thread holds its turn for `SLICE_SECONDS` at least, then others may go first: after a turn of long work the
    next is short work's if any waits, and the other way round, so that neither starves the other. Among threads of
    one kind, the one that waits longest goes first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Kind, deque[threading.Event]] = {"short": deque(), "long": deque()}
        self._held = False
        self._since = 0.0  # when the turn was taken

    @contextmanager
    def held(self, kind: Kind) -> Iterator[None]:
        """Hold the turn; `pass_on` lets others go in between."""
        self._take(kind)
        try:
            yield
        finally:
            self._give(kind)

    def pass_on(self, kind: Kind) -> None:
        """Let threads that wait go first, unless the turn has just begun.

        The caller must hold the turn, and holds it again afterwards.
        """
        with self._lock:
            if not any(self._waiting.values()) or time.monotonic() - self._since < SLICE_SECONDS:
                return
        self._give(kind)
        self._take(kind)

    def _take(self, kind: Kind) -> None:
        with self._lock:
            if not self._held:
                self._held, self._since = True, time.monotonic()
                return
            mine = threading.Event()
            self._waiting[kind].append(mine)
        mine.wait()  # whoever gives the turn up hands it over, so `_held` stays true
        self._since = time.monotonic()

    def _give(self, kind: Kind) -> None:
        other: Kind = "long" if kind == "short" else "short"
        with self._lock:
            following = self._waiting[other] or self._waiting[kind]
            if following:
                following.popleft().set()
            else:
                self._held = False
