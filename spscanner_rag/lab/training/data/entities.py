"""Names, years and numbers of English text, found by their form."""

import re

_NAME = r"(?:[A-Z][\w'’.-]*\w)(?:\s+(?:(?:of|the|de|von|van)\s+)?[A-Z][\w'’.-]*\w)*"  # noqa: RUF001
_YEAR = r"\b(?:1[0-9]|20)\d\d\b"
_NUMBER = r"\b\d[\d.,]*\d\b|\b\d\b"
_ENTITY = re.compile(rf"(?P<year>{_YEAR})|(?P<number>{_NUMBER})|(?P<name>\b{_NAME})")


def entities(text: str) -> list[re.Match[str]]:
    """Names, years and numbers in their order; the ``lastgroup`` of each is "name", "year" or "number".

    One at the very start is left out, since a capital there says nothing.
    """
    return [match for match in _ENTITY.finditer(text) if match.start() > 0]
