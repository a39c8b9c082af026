"""Long texts cut into documents, at ends of paragraphs or at least of sentences."""

import re
from collections.abc import Iterator

_CUTS = (re.compile(r"\n[^\S\n]*\n"), re.compile(r"\n"), re.compile(r"[.!?][\"')\]”’]*\s"), re.compile(r"\s"))  # noqa: RUF001


def text_pieces(text: str, most: int) -> Iterator[str]:
    """Cut a text into pieces of at most ``most`` characters that, joined, are the text.

    A piece ends at the last end of a paragraph in its second half, else of a line, of a sentence, of a word.
    """
    start = 0
    while len(text) - start > most:
        stop = _cut(text, start + most // 2, start + most)
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]


def _cut(text: str, low: int, high: int) -> int:
    for pattern in _CUTS:
        ends = [match.end() for match in pattern.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high
