"""What the metadata of a document say about its page."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


def page_label(metadata: Mapping[str, Any], keys: Sequence[str]) -> object:
    """The page label in metadata, under the first key that has one, or None.

    Examples
    --------
    >>> page_label({"page": 3, "page_label": "iii"}, ["page_label", "page"])
    'iii'
    """
    for key in keys:
        if metadata.get(key) is not None:
            return metadata[key]
    return None


def page_number(metadata: Mapping[str, Any], keys: Sequence[str]) -> float | None:
    """The page number in metadata, the first that is a number or a numeric string.

    Examples
    --------
    >>> page_number({"page": "3", "page_label": "iii"}, ["page_label", "page"])
    3.0
    """
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if math.isfinite(value):
            return float(value)
    return None
