"""A JSON text that is read piece by piece."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence import json_stream
from spscanner_lab.evidence.json_stream import JsonError, JsonStream, TooLongError

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def stream_of(text: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> JsonStream:
    monkeypatch.setattr(json_stream, "PIECE", piece)
    return JsonStream(StringIO(text))


@settings(max_examples=40)
@given(VALUES, st.integers(1, 9), st.sampled_from([None, 1]))
def test_values_are_read_and_skipped_in_any_pieces(
    value: Any, piece: int, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        assert stream_of(text, piece, patch).value() == value
        stream = stream_of(text + " ,", piece, patch)
        items = stream.skip()
        assert stream.peek() == ","
        if isinstance(value, list | dict):
            assert items == len(value)
        if isinstance(value, dict):
            stream = stream_of(text, piece, patch)
            pairs = {key: stream.value() for key in stream.keys()}  # noqa: SIM118
            assert pairs == value


@pytest.mark.parametrize("read", [JsonStream.value, JsonStream.skip])
@pytest.mark.parametrize(
    "text", ["", "[1, 2", '{"a": "b', '"a\\', "nul", '{"a"', "[[1], ", "x"]
)
def test_a_cut_text_is_refused(read: Callable[[JsonStream], Any], text: str) -> None:
    with pytest.raises(JsonError, match="at character"):
        read(JsonStream(StringIO(text)))


def test_a_value_that_is_too_long_can_be_skipped() -> None:
    stream = JsonStream(StringIO('{"a": "' + "x" * 3_000_000 + '", "b": 1}'))
    keys = stream.keys()
    assert next(keys) == "a"
    with pytest.raises(TooLongError, match="more than 1,000 characters"):
        stream.value(n_characters=1000)
    stream.skip()
    assert next(keys) == "b"
    assert stream.value() == 1


def test_a_key_without_quotes_and_a_missing_comma_are_named() -> None:
    with pytest.raises(JsonError, match="a key in quotes at character 1"):
        next(JsonStream(StringIO("{a: 1}")).keys())
    stream = JsonStream(StringIO("[1 2]"))
    items = stream.items()
    next(items)
    stream.value()
    with pytest.raises(JsonError, match="expected ',' at character 3, got '2\\]'"):
        next(items)
