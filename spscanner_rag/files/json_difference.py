"""What differs between two JSON objects that say what the results of a folder were made of."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as it comes back from a file: tuples are lists, and names are strings."""
    made: dict[str, Any] = json.loads(json.dumps(dict(content)))
    return made


def difference(
    before: Mapping[str, Any], now: Mapping[str, Any], leaving_out: Collection[tuple[str, str]] = ()
) -> str:
    """The values that differ, for people; empty if none do.

    None is the same as no value. ``leaving_out`` has the first two names that lead to values which may differ.
    """
    own, others = _flat(before), _flat(as_json(now))
    differing = sorted(
        path
        for path in own.keys() | others.keys()
        if own.get(path) != others.get(path) and path[:2] not in leaving_out
    )
    told = [
        f"{': '.join(path)}: {_shown(own.get(path))}, now {_shown(others.get(path))}"
        for path in differing[:6]
    ]
    return "; ".join(told) + (f"; and {len(differing) - 6} more" if len(differing) > 6 else "")


def _flat(content: object) -> dict[tuple[str, ...], object]:
    """The values below nested objects, by the names that lead to them."""
    return dict(_leaves(content, ()))


def _leaves(content: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _leaves(value, (*path, name))
    elif content is not None:
        yield path, content


def _shown(value: object) -> str:
    """A digest is told apart by its first digits."""
    return f"{value[:12]}..." if isinstance(value, str) and len(value) == 64 else f"{value!r:.80}"
