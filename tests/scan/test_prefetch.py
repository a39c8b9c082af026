"""One item ahead, in a thread: order, how far ahead, errors, what is left behind."""

import threading
from collections.abc import Iterator

import pytest

from spscanner_rag.scan.prefetch import one_ahead


def test_items_come_in_order() -> None:
    assert list(one_ahead(range(7))) == list(range(7))
    assert list(one_ahead([])) == []
    assert list(one_ahead([None, None])) == [None, None]


def test_one_is_made_while_another_is_in_use_and_no_more() -> None:
    made: list[str] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(threading.current_thread().name)
            if number == 1:
                second.set()
            yield number

    ahead = one_ahead(items())
    assert made == []
    assert next(ahead) == 0
    assert second.wait(60)  # without being asked for
    assert next(ahead) == 1
    ahead.close()
    assert len(made) <= 3
    assert made[0] == threading.current_thread().name
    assert all(name.startswith("spscanner-ahead") for name in made[1:])


def test_an_error_comes_in_its_turn() -> None:
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise ValueError("no third")

    ahead = one_ahead(items())
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(ValueError, match="no third"):
        next(ahead)
    with pytest.raises(StopIteration):
        next(ahead)


def test_closing_leaves_no_thread() -> None:
    ahead = one_ahead(iter(range(1000)))
    next(ahead)
    ahead.close()
    assert not any(thread.name.startswith("spscanner-ahead") for thread in threading.enumerate())
