"""JSON whose objects name each key once."""

import json
from typing import Any


def parse_json(content: str | bytes) -> Any:  # noqa: ANN401 - as json.loads
    """Parse JSON as `json.loads` does, but refuse a key that an object has twice: only the last would count.

    Raises
    ------
    ValueError
        Also for what is not JSON.
    RecursionError
        For values that are nested too deeply.
    """
    return json.loads(content, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.60} twice")
    return found
