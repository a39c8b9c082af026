"""What was computed for the texts that were asked about last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.text.units import Unit

T = TypeVar("T")


class TextCache(Generic[T]):
    """Keeps values for the ``keep_texts`` most recently used texts.

    Thread-safe; a pickle has no values.

    Examples
    --------
    >>> from spscanner_rag.baselines.text_cache import TextCache
    >>> lengths = TextCache(keep_texts=2)
    >>> lengths.get("It rained.", [], lambda: 10)
    10
    >>> lengths.get("It rained.", [], lambda: 1 / 0)
    10
    """

    def __init__(self, keep_texts: int) -> None:
        check_whole(keep_texts=keep_texts)
        self.keep_texts = keep_texts
        self._values: OrderedDict[object, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, units: Sequence[Unit], compute: Callable[[], T]) -> T:
        """Return the value for a text and its units.

        It is computed if the cache does not have it.
        """
        key = (text, tuple(units))
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # without the lock, so other threads do not wait; at worst, two compute it
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self.keep_texts:
                self._values.popitem(last=False)
        return value

    def __reduce__(self) -> tuple[type["TextCache[T]"], tuple[int]]:
        return TextCache, (self.keep_texts,)
