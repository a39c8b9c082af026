"""Recognizes values that are base64, which no person reads."""

import re

_FEWEST_CHARACTERS = 256
_LONGEST_WORD = 200
"""A word of the languages that people write in is shorter."""

_BASE64 = re.compile(r"(?:data:[\w/+.;=-]{0,100},)?[A-Za-z0-9+/_-]+={0,2}")


def is_base64(text: str) -> bool:
    """Return whether a value is base64, with or without line breaks.

    Examples
    --------
    >>> is_base64("iVBORw0KGgo=" * 30), is_base64("The keeper left. " * 30)
    (True, False)
    """
    if len(text) < _FEWEST_CHARACTERS:
        return False
    lines = text.split()
    if len(lines) > 1 and len(lines[0]) < _FEWEST_WRAPPED:
        return False
    return _BASE64.fullmatch("".join(lines).replace("=", "")) is not None


_FEWEST_WRAPPED = 60  # characters of a line, as tools wrap base64
