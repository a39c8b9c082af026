import json

import pytest
from hypothesis import given, settings

from tests.files.readers.test_json_records import VALUES, words_in
from tests.small_files import assert_all_read

pytest.importorskip("yaml", reason="the extra files is not installed")

from spscanner_rag.files.readers.yaml_records import read_yaml

SHIP = r"""# The ship
version: 2
note: "J\u00fcrgen's"
orders:
  - id: 1   # first
    who: Anne
  - id: 2
    lines:
      - sku: x
"""


def test_records_have_paths_and_the_text_is_the_file_s_own() -> None:
    document = read_yaml(SHIP.encode())
    assert document.text == SHIP.replace(r"\u00fc", "ü")
    rows = []
    marks = []
    for block in document.blocks:
        text = document.text[block.start : block.end]
        if block.kind == "markup":
            marks.append(text)
        else:
            rows.append((document.place_name(block.start), text))
    assert marks == ["- "]  # what begins a record is not read with it
    assert rows == [
        ("$", 'version: 2\nnote: "Jürgen\'s"'),
        ("$.orders[0]", "orders:\n  - id: 1   # first\n    who: Anne"),
        ("$.orders[1].id", "- id: 2"),
        ("$.orders[1].lines[0]", "lines:\n      - sku: x"),
    ]


@given(VALUES)
@settings(max_examples=10, deadline=None)
def test_every_key_and_value_is_in_a_unit(value: object) -> None:
    document = read_yaml(json.dumps(value, ensure_ascii=False).encode())
    assert_all_read(document, words_in(value))


def test_aliases_are_not_expanded() -> None:
    lines = ["b0: &b0 [lol, lol]"]
    for number in range(1, 30):
        aliases = ", ".join([f"*b{number - 1}"] * 10)
        lines.append(f"b{number}: &b{number} [{aliases}]")
    source = "\n".join(lines)
    assert read_yaml(source.encode()).text == source


def test_no_tag_makes_an_object() -> None:
    source = "a: !!python/object/apply:os.system ['exit 1']"
    assert read_yaml(source.encode()).text == source


@pytest.mark.parametrize("data", [b"[" * 10**5, b"- " * 10**5, b"a: " + b"{b: " * 600])
def test_deep_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="nested more than 500 deep"):
        read_yaml(data)


def test_what_is_no_yaml_is_read_as_text() -> None:
    document = read_yaml(b"a: {{ value }}: b")
    assert document.text == "a: {{ value }}: b"
    assert "no valid YAML" in document.notes[0]
