"""Ids that a framework or a store makes up, new in each run."""

import re

_RANDOM_ID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
    re.IGNORECASE,
)


def is_random_id(name: str) -> bool:
    """True for a UUID version 4 (RFC 9562).

    Examples
    --------
    >>> is_random_id("3f0c1d7e-9a4b-4c21-8d6e-0b5a7f3e2c19")
    True
    >>> is_random_id("contract.pdf")
    False
    """
    return _RANDOM_ID.fullmatch(name) is not None
