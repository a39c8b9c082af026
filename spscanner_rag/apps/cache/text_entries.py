"""The text of a file as the content of an entry, and back.

The content is the sizes of its parts, then, compressed, JSON and the array of words.
It is unpacked only up to the sizes that it states, which are bounded.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from spscanner_rag.files.documents import PageStart, PlaceStart, TextFile, block_of
from spscanner_rag.text.blocks import Block, BlockKind
from spscanner_rag.text.word_boxes import Words

MOST_BYTES = 2**26
"""Most bytes of the JSON, and of the words, of a text that is kept."""

MOST_VALUES = 2**22
"""Most lists, or brackets in the text, of a text that is kept: JSON that has more can
take a hundred times its size."""

_SIZES = struct.Struct("<QQ")  # bytes of the JSON, and of the words
_NUMBERS_OF_WORD = 6
_WORD_BYTES = 4 * _NUMBERS_OF_WORD
_COMPRESSION = 1
_KINDS = get_args(BlockKind)


def content_of_text(document: TextFile) -> bytes | None:
    """Return the content of the entry of a text, without its path.

    None if it is too large to be kept.
    """
    parts = [
        document.text,
        document.blocks,
        document.pages,
        document.notes,
        document.places,
        dict(document.metadata),
    ]
    encoded = json.dumps(parts).encode("ascii")
    words = b""
    if document.words is not None:
        # a first row of zeros tells no words from no array
        first_row = np.zeros((1, _NUMBERS_OF_WORD), "<i4")
        words = np.concatenate([first_row, document.words]).astype("<i4").tobytes()
    if not _is_bounded(encoded, len(words)):
        return None
    sizes = _SIZES.pack(len(encoded), len(words))
    return sizes + zlib.compress(encoded + words, _COMPRESSION)


def text_of(path: str, content: bytes) -> TextFile | None:
    """Return the text in a content, or None if the content has any fault.

    Examples
    --------
    >>> content = content_of_text(TextFile("", "It rained."))
    >>> text_of("notes.html", content)
    TextFile(path='notes.html', text='It rained.', ...)
    >>> text_of("notes.html", content[:-1]) is None
    True
    """
    try:
        document = _unpacked(content)
    except Exception:  # whatever is wrong with it, the file is read again
        return None
    return replace(document, path=path)


def _unpacked(content: bytes) -> TextFile:
    """The text in a content, or an exception for any fault."""
    json_bytes, words_bytes = _SIZES.unpack_from(content)
    _require(max(json_bytes, words_bytes) <= MOST_BYTES)
    size = json_bytes + words_bytes
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(content[_SIZES.size :], size + 1)
    _require(len(data) == size and unpacking.eof and not unpacking.unused_data)
    encoded = data[:json_bytes]
    _require(_is_bounded(encoded, words_bytes))
    text, blocks, pages, notes, place_starts, metadata = json.loads(encoded)
    _require(type(text) is str)
    _require(all(type(note) is str for note in notes))
    for name, value in metadata.items():
        _require(type(name) is str and type(value) is str)
    return TextFile(
        "",
        text,
        tuple(_blocks(blocks, len(text))),
        tuple(_pages(pages, len(text))),
        tuple(notes),
        _words(data[json_bytes:], len(text)),
        tuple(_place_starts(place_starts, len(text))),
        metadata,
    )


def _blocks(values: Sequence[Sequence[Any]], length: int) -> list[Block]:
    blocks = [block_of(value) for value in values]
    for block in blocks:
        _require_span(block.start, block.end, length)
        _require(block.kind in _KINDS)
        _require(type(block.level) is int and type(block.title) is str)
        if block.header is not None:
            _require_span(*block.header, length)
    _require_order([block.start for block in blocks])
    return blocks


def _pages(values: Sequence[Sequence[Any]], length: int) -> list[PageStart]:
    pages = [PageStart(*value) for value in values]
    for page in pages:
        _require_span(page.start, length, length)
        _require(type(page.number) is int and type(page.label) is str)
    _require_order([page.start for page in pages])
    return pages


def _place_starts(values: Sequence[Sequence[Any]], length: int) -> list[PlaceStart]:
    place_starts = [PlaceStart(*value) for value in values]
    for place in place_starts:
        _require_span(place.start, length, length)
        _require(type(place.name) is str)
    _require_order([place.start for place in place_starts])
    return place_starts


def _words(data: bytes, length: int) -> Words | None:
    """The array of words: (words, 6)."""
    if not data:
        return None
    _require(len(data) % _WORD_BYTES == 0)
    rows = np.frombuffer(data, "<i4").reshape(-1, _NUMBERS_OF_WORD)
    words = rows[1:].astype(np.int32)
    spans = words[:, :2]
    _require(bool(np.all((spans >= 0) & (spans <= length))))
    _require(bool(np.all(np.diff(words[:, 0]) >= 0)))
    return words


def _is_bounded(encoded: bytes, words_bytes: int) -> bool:
    """Whether the JSON and the words of a text may be kept."""
    values = encoded.count(b"[") + encoded.count(b"{")
    return max(len(encoded), words_bytes) <= MOST_BYTES and values <= MOST_VALUES


def _require(is_right: bool) -> None:
    if not is_right:
        raise ValueError("not what was written")


def _require_span(start: object, end: object, length: int) -> None:
    _require(type(start) is int and type(end) is int and 0 <= start <= end <= length)


def _require_order(starts: Sequence[int]) -> None:
    for first, second in pairwise(starts):
        _require(first <= second)
