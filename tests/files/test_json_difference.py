"""What differs between two JSON objects."""

from spscanner_rag.files.json_files import difference


def test_nothing_differs_between_an_object_and_itself_read_back() -> None:
    assert difference({"a": [1, 2], "b": {"c": None}}, {"a": (1, 2)}) == ""


def test_each_difference_is_named_by_its_place_and_digests_are_cut() -> None:
    told = difference({"a": {"b": 1}, "c": "0" * 64}, {"a": {"b": 2}, "c": "f" * 64})
    assert told == "a: b: 1, now 2; c: 000000000000..., now ffffffffffff..."


def test_many_differences_are_counted() -> None:
    told = difference({str(number): 0 for number in range(9)}, {})
    assert told.endswith("; and 3 more")


def test_what_may_differ_is_left_out() -> None:
    assert difference({"a": {"b": {"c": 1}}}, {"a": {}}, {("a", "b")}) == ""
