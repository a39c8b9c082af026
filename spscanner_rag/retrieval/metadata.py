"""What frameworks keep next to a text: copied, and read for its page number."""

import math
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


def page_number(value: object) -> float | None:
    """Parse a page number of a document's metadata, a number or numeric string; None for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def copied_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of metadata; a shallow one if a value cannot be copied."""
    try:
        return deepcopy(dict(metadata))
    except Exception:  # a value such as a lock
        return dict(metadata)
