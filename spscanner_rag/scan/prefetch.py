"""The next item made ready in a thread while the one before is in use."""

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

_END: Final = object()


def one_ahead(items: Iterable[T]) -> Generator[T, None, None]:
    """The items, in order, at most one of them ahead of the caller.

    The first is made in the caller's thread: there is nothing yet to do beside it. What making an item raises is
    raised where the item would have been given, after all those before it. Closing the generator waits for
    the item that is being made, so that no thread is left behind.

    Parameters
    ----------
    items : iterable
        Asked for one item at a time, if not always by the same thread.
    """
    iterator = iter(items)
    item: T | object = next(iterator, _END)
    if item is _END:
        return
    with ThreadPoolExecutor(1, thread_name_prefix="spscanner-ahead") as thread:
        while item is not _END:
            following = thread.submit(next, iterator, _END)
            yield item  # type: ignore[misc]  # told from the end above
            item = following.result()
