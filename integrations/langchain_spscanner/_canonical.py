"""Strings and digests that are the same for equal values in every process."""

import hashlib
from collections.abc import Mapping


def digest(value: object) -> str:
    """A hash that is the same for equal values in every process."""
    text = canonical(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:24]


def canonical(value: object) -> str:
    """A string that is equal for equal values, whatever the order of keys.

    Stores that keep JSON return tuples as lists, and some keep every number as a float.

    Examples
    --------
    >>> canonical({"page": 3.0, "box": (1, 2)})
    "{'box':[1,2],'page':3}"
    """
    if isinstance(value, Mapping):
        entries = [
            f"{canonical(key)}:{canonical(inner)}" for key, inner in value.items()
        ]
        return "{" + ",".join(sorted(entries)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, set | frozenset):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    if type(value).__repr__ is object.__repr__:
        # Its repr contains an address, which differs between copies.
        return type(value).__qualname__
    return repr(value)
