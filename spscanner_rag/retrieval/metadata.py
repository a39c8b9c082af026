"""What frameworks keep next to a text: copied, and read for its page number; ids that are not made up."""

import math
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

_RANDOM_ID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}", re.IGNORECASE
)
_NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


def page_number(value: object) -> float | None:
    """Parse a page number of a document's metadata, a number or numeric string; None for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def is_random_id(name: str) -> bool:
    """Whether an id is a random one (UUID version 4, RFC 9562), as frameworks and stores give to what has none.

    Such an id is another one in the next run.
    """
    return _RANDOM_ID.fullmatch(name) is not None


def copied_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of metadata; a shallow one if a value cannot be copied."""
    try:
        return deepcopy(dict(metadata))
    except Exception:  # a value such as a lock
        return dict(metadata)
