import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.files.readers.json_records import read_json, read_json_lines
from tests.small_files import assert_all_read, texts_of_words

ORDERS = r"""{"version": 1.50, "orders": [
  {"id": 1, "who": "J\u00fcrgen", "address": {"city": "Bonn"}, "tags": ["a", "b"]},
  {"id": 2, "who": "Bo", "lines": [{"sku": "x"}, {"sku": "y"}]}],
  "people": {"anne": {"age": 3}, "bob": {"age": null}}}"""


def test_a_record_is_a_unit_with_its_path() -> None:
    document = read_json(ORDERS.encode())
    rows = {}
    for block in document.blocks:
        rows[document.place_name(block.start)] = document.text[block.start : block.end]
    assert rows == {
        "$": "version: 1.50",
        "$.orders[0]": (
            "orders | id: 1 | who: Jürgen | address.city: Bonn | tags: a, b"
        ),
        "$.orders[1]": "id: 2 | who: Bo",
        "$.orders[1].lines[0]": "lines | sku: x",
        "$.orders[1].lines[1]": "sku: y",
        "$.people.anne": "people | anne | age: 3",
        "$.people.bob": "bob | age: null",
    }


def test_a_long_value_is_cut_into_sentences() -> None:
    story = "It rained. " * 40
    document = read_json(json.dumps([{"id": 1, "text": story}]).encode())
    assert document.text == f"id: 1\n\ntext: {story.strip()}"
    assert document.place_name(20) == "$[0].text"


def test_base64_is_not_read() -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgo" * 100
    document = read_json(json.dumps({"log": "Rope", "picture": picture}).encode())
    assert document.text == "log: Rope | picture: (base64)"
    assert document.notes == ("values in base64 are left out (1)",)


def test_json_lines_have_the_number_of_their_line() -> None:
    data = b'{"a": 1}\n\n{"m": [{"who": "Anne"}]}\nno json\n'
    document = read_json_lines(data)
    assert document.text == "a: 1\nm | who: Anne\nno json"
    names = [place.name for place in document.places]
    assert names == ["line 1", "line 3, $.m[0]", "line 4"]
    assert "line 4" in document.notes[0]


VALUES = st.recursive(
    texts_of_words(min_size=1, max_size=1).map(lambda texts: texts[0]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(st.text("abcxyz", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def words_in(value: object) -> list[str]:
    if isinstance(value, dict):
        words = list(map(str, value))
        for inner in value.values():
            words += words_in(inner)
        return words
    if isinstance(value, list):
        return [word for inner in value for word in words_in(inner)]
    return [str(value)]


@given(VALUES)
@settings(max_examples=10, deadline=None)
def test_every_key_and_value_is_in_a_unit(value: object) -> None:
    assert_all_read(read_json(json.dumps(value).encode()), words_in(value))
    assert_all_read(read_json_lines(json.dumps(value).encode()), words_in(value))


@pytest.mark.parametrize(
    "data", [b"[" * 10**5 + b"]" * 10**5, b'{"a":' * 600 + b"1" + b"}" * 600]
)
def test_deep_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="nested more than 500 deep"):
        read_json(data)


def test_what_is_no_json_is_read_as_text() -> None:
    document = read_json(b'{"a": 1, // one\n}')
    assert document.text == '{"a": 1, // one\n}'
    assert "no valid JSON" in document.notes[0]


def test_a_repeated_key_is_read_again() -> None:
    assert read_json(b'{"a": 1, "a": 2}').text == "a: 1 | a: 2"
