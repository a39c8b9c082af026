"""JSON without repeated keys, in ASCII."""

import json

import pytest

from spscanner_rag.system.strict_json import json_text, parse_json


def test_json_is_ascii_and_strict() -> None:
    content = {"text": "é\x1b\ud800", "number": 1.5}
    assert json_text(content).isascii()
    assert json.loads(json_text(content)) == content
    with pytest.raises(ValueError, match="nan"):
        json_text({"number": float("nan")})


@pytest.mark.parametrize(
    "content", ['{"a": 1, "a": 1}', '[{"x": {"b": 1, "a": 2, "c": 3, "a": 4}}]']
)
def test_a_key_that_is_there_twice(content: str) -> None:
    with pytest.raises(ValueError, match="the key 'a' twice"):
        parse_json(content)
    with pytest.raises(
        ValueError, match="the key '39999' twice"
    ):  # within a test's time limit of a minute
        parse_json(
            json.dumps({str(n): n for n in range(40_000)})[:-1] + ', "39999": 1}'
        )
    assert parse_json(b'{"a": [{"b": 1}, {"b": 2}]}') == {"a": [{"b": 1}, {"b": 2}]}
