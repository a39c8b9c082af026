"""Reads plain text unchanged, with the turns of a transcript or chat."""

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.turns import turns_of


def read_text(data: bytes) -> TextFile:
    """Read plain text unchanged.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    return TextFile("", text, turns_of(text))
