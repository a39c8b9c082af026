"""JSON whose objects name each key once."""

import pytest

from spscanner_rag.files.json_files import parse_json


def test_what_json_holds() -> None:
    assert parse_json(b'{"a": [{"b": 1}, {"b": 2}], "c": {"a": null}}') == {
        "a": [{"b": 1}, {"b": 2}],
        "c": {"a": None},
    }
    assert parse_json("1") == 1


@pytest.mark.parametrize("content", ['{"a": 1, "a": 1}', '[{"x": {"b": 1, "a": 2, "c": 3, "a": 4}}]'])
def test_a_key_that_is_there_twice(content: str) -> None:
    with pytest.raises(ValueError, match="the key 'a' twice"):
        parse_json(content)
