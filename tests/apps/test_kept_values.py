"""Values that are kept within a bound of memory."""

from spscanner_rag.apps.kept_values import KeptValues


def test_what_is_values_is_bounded_and_the_latest() -> None:
    values = KeptValues[str](10)
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
