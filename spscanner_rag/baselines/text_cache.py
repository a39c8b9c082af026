"""A cache of what a baseline computed for a text, such as an index, for further questions about it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from spscanner_rag.baselines.base import check_whole
from spscanner_rag.text.units import Unit

T = TypeVar("T")


class TextCache(Generic[T]):
    """Keeps values for the ``keep_texts`` most recently used texts. Thread-safe; pickled without its values."""

    def __init__(self, keep_texts: int) -> None:
        check_whole(keep_texts=keep_texts)
        self.keep_texts = keep_texts
        self._kept: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, units: Sequence[Unit], prepare: Callable[[], T]) -> T:
        """The value for a text and its units; ``prepare`` computes it if it is not in the cache."""
        key = (text, tuple(units))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = prepare()  # without the lock, so that other threads go on; at worst it is computed twice
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self.keep_texts:
                self._kept.popitem(last=False)
        return value

    def values(self) -> list[T]:
        """The values that are kept now."""
        with self._lock:
            return list(self._kept.values())

    def __reduce__(self) -> tuple[type["TextCache[T]"], tuple[int]]:
        return TextCache, (self.keep_texts,)
