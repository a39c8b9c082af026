"""What a baseline worked out for the units of a text, kept for the next question on it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from spscanner_rag.text.units import Unit

T = TypeVar("T")


class PreparedTexts(Generic[T]):
    """The last few texts, the least recently used forgotten first. May be used from several threads.

    Parameters
    ----------
    texts : int
        How many are kept, at least 1.
    """

    def __init__(self, texts: int) -> None:
        if type(texts) is not int or texts < 1:
            raise ValueError(f"got {texts!r} texts to keep; expected a whole number of at least 1")
        self.texts = texts
        self._kept: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, units: Sequence[Unit], prepare: Callable[[], T]) -> T:
        """What ``prepare`` returns for the units of the text, called if it is not known."""
        key = (text, tuple((unit.start, unit.end) for unit in units))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        value = prepare()  # not under the lock: others go on; at worst it is done twice
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self.texts:
                self._kept.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type["PreparedTexts[T]"], tuple[int]]:
        return PreparedTexts, (self.texts,)
