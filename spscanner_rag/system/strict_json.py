"""JSON without surprises: no key twice when it is read, ASCII when it is written."""

import json
from collections import Counter
from typing import Any


def json_text(content: object) -> str:
    r"""Encode a value as indented JSON in ASCII, with a line break at its end.

    So no character of a document can control a terminal, and any encoding can write
    it.

    Examples
    --------
    >>> json_text({"text": "é"})
    '{\n  "text": "\\u00e9"\n}\n'
    """
    return json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def parse_json(content: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    """Parse JSON as `json.loads` does, and refuse an object that repeats a key.

    `json.loads` would count the last value only.

    Raises
    ------
    ValueError
        For a repeated key, or for what is not JSON.
    """
    return json.loads(content, object_pairs_hook=_without_repeated_keys)


def parse_object(content: str | bytes) -> dict[str, Any]:
    """Parse a JSON object as `parse_json` does.

    Raises
    ------
    ValueError
        Also for anything but an object, and for nesting that is too deep.
    """
    try:
        value = parse_json(content)
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}")
    return value


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {repeated!r:.60} twice")
    return values
