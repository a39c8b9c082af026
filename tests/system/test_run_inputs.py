"""Differences between the inputs of two runs."""

import pytest

from spscanner_rag.system.run_inputs import difference


@pytest.mark.parametrize(
    ("before", "now", "leaving_out", "told"),
    [
        (
            {"a": [1, 2], "b": {"c": None}},
            {"a": (1, 2)},
            (),
            "",
        ),  # equal once it is read back
        (
            {"a": {"b": 1}, "c": "0" * 64},
            {"a": {"b": 2}, "c": "f" * 64},
            (),
            "a: b: 1, now 2; c: 000000000000..., now ffffffffffff...",
        ),
        ({"a": {"b": {"c": 1}}}, {"a": {}}, {("a", "b")}, ""),
        (
            dict.fromkeys("abcdefghi", 0),
            {},
            (),
            "; ".join(f"{a}: 0, now None" for a in "abcdef") + "; and 3 more",
        ),
    ],
)
def test_differences_are_named_by_their_place(
    before: dict[str, object],
    now: dict[str, object],
    leaving_out: set[tuple[str, str]],
    told: str,
) -> None:
    assert difference(before, now, leaving_out) == told
