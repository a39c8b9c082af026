"""Values that are kept within a bound of memory."""

import gc
import threading

import pytest

from spscanner_rag.system import kept_values
from spscanner_rag.system.kept_values import KeptBytes, KeptValues


def test_what_is_kept_is_bounded_and_the_latest() -> None:
    values = KeptValues[str](KeptBytes(10))
    for name, size in (("a", 4), ("b", 4), ("large", 11), ("c", 4), ("a", 5), ("d", 6)):
        values.put(name, name.upper(), size)
        values.get("b")
    assert [values.get(name) for name in ("a", "b", "c", "d", "large")] == [
        None,
        "B",
        None,
        "D",
        None,
    ]
    assert values.bound.total == 10


def test_owners_share_a_bound_and_not_their_keys() -> None:
    bound = KeptBytes(10)
    first = KeptValues[str](bound)
    second = KeptValues[str](bound)
    first.put("a", "of the first", 5)
    second.put("a", "of the second", 5)
    assert (first.get("a"), second.get("a")) == ("of the first", "of the second")
    second.put("b", "more", 5)
    assert (first.get("a"), second.get("a")) == (None, "of the second")


def test_what_grew_too_large_is_not_kept_as_it_was() -> None:
    values = KeptValues[str](KeptBytes(10))
    values.put("a", "small", 5)
    values.put("a", "large", 50)
    assert values.get("a") is None
    assert values.bound.total == 0


def test_values_of_an_owner_that_is_gone_make_room() -> None:
    bound = KeptBytes(10)
    left = KeptValues[str](bound)
    left.put("a", "first", 4)
    gone = KeptValues[str](bound)
    gone.put("a", "second", 4)
    del gone
    gc.collect()
    left.put("b", "third", 6)
    assert left.get("a") == "first"
    assert bound.total == 10


def test_threads_share_it() -> None:
    values = KeptValues[int](KeptBytes(50))

    def use() -> None:
        for number in range(2_000):
            values.put(number % 70, number, 1)
            values.get(number % 7)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values.bound.total == 50


def test_the_environment_says_how_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    original = kept_values.bound_of_process.__wrapped__
    monkeypatch.setenv("SPSCANNER_KEPT_BYTES", " 1000 ")
    assert original().most_bytes == 1000
    monkeypatch.delenv("SPSCANNER_KEPT_BYTES")
    assert original().most_bytes == 2**29
    for value in ("-1", "1e9", "256M", "²"):
        monkeypatch.setenv("SPSCANNER_KEPT_BYTES", value)
        with pytest.raises(ValueError, match="expected a number of bytes, such as"):
            original()


def test_a_bound_of_zero_keeps_nothing() -> None:
    values = KeptValues[str](KeptBytes(0))
    values.put("a", "text", 1)
    assert values.get("a") is None
