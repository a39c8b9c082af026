"""What results were made from: described in a file, and compared by a resumed run."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.system.strict_json import parse_object

_DIFFERENCES_SHOWN = 6
_SHA256_DIGITS = 64


class OtherRunError(ValueError):
    """A folder contains the results of a run on other inputs, or of an unknown run."""


def earlier_run(path: Path, results: str) -> dict[str, Any]:
    """Read the file that describes the inputs of the results beside it.

    Parameters
    ----------
    path : Path
        The file.
    results : str
        What the results are called in messages, such as "parts".

    Raises
    ------
    OtherRunError
        If there is no such file, or if it is damaged.
    """
    content = path.read_bytes() if path.exists() else None
    return parse_description(content, str(path.parent), path.name, results)


def parse_description(
    content: bytes | None, folder: str, name: str, results: str
) -> dict[str, Any]:
    """Parse the content of the file that describes the inputs of results.

    Parameters
    ----------
    content : bytes, optional
        None if there is no such file.
    folder, name : str
        Where the file is, for messages.
    results : str
        What the results are called in messages, such as "parts".

    Raises
    ------
    OtherRunError
        If there is no such file, or if it is damaged.
    """
    if content is None:
        raise OtherRunError(
            f"{folder}: got {results} without {name}, which says what they were made"
            " from; expected both: give another --out, or delete the folder"
        )
    try:
        return parse_object(content)
    except ValueError as error:
        raise OtherRunError(
            f"{folder}/{name}: expected the JSON object that says what the {results}"
            f" were made from, got a damaged file ({error}); give another --out, or"
            " delete the folder"
        ) from None


def refuse_other_run(
    folder: Path | str,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    leaving_out: Collection[tuple[str, str]] = (),
) -> None:
    """Refuse a folder whose earlier run differs from this one.

    The parameters are those of `difference`.

    Raises
    ------
    OtherRunError
        Names what differs.
    """
    differences = difference(before, now, leaving_out)
    if differences:
        raise OtherRunError(
            f"{folder} has the results of a run on other inputs, or with other models"
            f" or options ({differences}); give the same again, or another --out"
        )


def difference(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    leaving_out: Collection[tuple[str, str]] = (),
) -> str:
    """Describe the values that differ between two descriptions of inputs.

    Parameters
    ----------
    before, now : mapping
        None equals no value.
    leaving_out : collection of pairs
        The first two names of paths to skip.

    Returns
    -------
    str
        The first differences; empty if there are none.

    Examples
    --------
    >>> difference({"model": {"name": "a"}}, {"model": {"name": "b"}})
    "model: name: 'a', now 'b'"
    """
    # as read from JSON: lists for tuples, strings for keys
    now_as_read = json.loads(json.dumps(dict(now)))
    values_before = dict(leaves(before))
    values_now = dict(leaves(now_as_read))
    differing: list[tuple[str, ...]] = []
    for path in sorted(values_before.keys() | values_now.keys()):
        if path[:2] in leaving_out:
            continue
        if values_before.get(path) != values_now.get(path):
            differing.append(path)
    descriptions: list[str] = []
    for path in differing[:_DIFFERENCES_SHOWN]:
        old_value = _shown(values_before.get(path))
        new_value = _shown(values_now.get(path))
        descriptions.append(f"{': '.join(path)}: {old_value}, now {new_value}")
    description = "; ".join(descriptions)
    if len(differing) > _DIFFERENCES_SHOWN:
        description += f"; and {len(differing) - _DIFFERENCES_SHOWN} more"
    return description


def leaves(
    content: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield each value in nested objects with the path of names that leads to it.

    The values are neither objects nor None.
    """
    if isinstance(content, dict):
        for name, value in content.items():
            yield from leaves(value, (*path, name))
    elif content is not None:
        yield path, content


def _shown(value: object) -> str:
    """Return the value for a message, a digest as its first digits."""
    if isinstance(value, str) and len(value) == _SHA256_DIGITS:
        return f"{value[:12]}..."
    return f"{value!r:.80}"
