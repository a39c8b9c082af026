"""The texts in what a tool returns, and the content with other texts in their place."""

import json
import re
from collections.abc import Callable
from typing import Any

SHORTEST_CUT = 400  # strings in JSON of at most this many characters are not cut

# A string of JSON, with the colon if it is a key.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"(\s*+:)?')


def texts_in(content: Any) -> list[str]:  # noqa: ANN401 - blocks of any kind
    """The texts that `with_texts` replaces, in their order."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    with_texts(content, note)
    return texts


def with_texts(content: Any, replacement: Callable[[str], str]) -> Any:  # noqa: ANN401
    """A tool's content, in which each text is replaced.

    A text is a string that is no JSON, or a long string in JSON.

    Parameters
    ----------
    content : object
        A string, a block, or a list of these.
    replacement : callable
        Returns what replaces a text.

    Examples
    --------
    >>> with_texts([{"type": "text", "text": "a b"}], str.upper)
    [{'type': 'text', 'text': 'A B'}]
    """
    if isinstance(content, list):
        return [with_texts(block, replacement) for block in content]
    if isinstance(content, dict):
        text = content.get("text")
        if content.get("type") != "text" or not isinstance(text, str):
            return content
        return content | {"text": with_texts(text, replacement)}
    if not _is_json(content):
        return replacement(content) if content.strip() else content
    return _STRING.sub(lambda string: _with_string(string, replacement), content)


def _with_string(string: re.Match[str], replacement: Callable[[str], str]) -> str:
    """A string of JSON, replaced if it is long and no key."""
    is_key = bool(string[1])
    if is_key or len(string[0]) <= SHORTEST_CUT:
        return string[0]
    return json.dumps(replacement(json.loads(string[0])), ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and json.loads(text) is not None
    except (ValueError, RecursionError):
        return False
