"""What a model replies that decomposes passages into propositions."""

import json
import re
from typing import NamedTuple

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)  # allows line breaks inside strings


class Source(NamedTuple):
    """A passage and the title of its text.

    The title may be empty.
    """

    title: str
    content: str


def read_reply(reply: str) -> tuple[str, ...]:
    """Return the strings of the JSON list in a reply, each on one line.

    Empty and repeated ones are left out. If the list is broken or ends early, its
    complete strings are used.
    """
    _, bracket, strings = reply.partition("[")
    lines: dict[str, None] = {}
    for quoted in _STRING.findall(bracket + strings):
        line = " ".join(_decoded(quoted).split())
        if any(map(str.isalnum, line)):
            lines[line] = None
    return tuple(lines)


def _decoded(quoted: str) -> str:
    try:
        return str(_LENIENT.decode(quoted))
    except ValueError:  # not an escape of JSON
        return quoted[1:-1]
