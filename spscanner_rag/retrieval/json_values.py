"""Which values JSON keeps as they are."""

import json
from collections.abc import Mapping


def check_json(value: object, name: str, owner: str) -> None:
    """Raise ``ValueError`` unless a value comes back from JSON as it went in.

    Parameters
    ----------
    value : object
        What is to be written.
    name : str
        What the error calls it.
    owner : str
        What the error calls the object that has it, such as ``"document 3"``.

    Examples
    --------
    >>> check_json({"page": 3}, "metadata", "document 1")
    >>> check_json({"page": (3, 4)}, "metadata", "document 1")
    Traceback (most recent call last):
    ...
    ValueError: metadata['page'] of document 1 is tuple (3, 4), which JSON cannot keep \
as it is; expected strings, finite numbers, booleans, None, lists and dictionaries of \
these: convert it before persist
    """
    try:
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            return
    except (TypeError, ValueError, RecursionError):
        pass
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                name = f"a key of {name}"
                value = key
                break
            check_json(inner, f"{name}[{key!r}]", owner)
    raise ValueError(
        f"{name} of {owner} is {type(value).__name__} {value!r:.60}, which JSON cannot"
        " keep as it is; expected strings, finite numbers, booleans, None, lists and"
        " dictionaries of these: convert it before persist"
    )
