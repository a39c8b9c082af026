"""Reads one large JSON value piece by piece, so that memory does not grow with it."""

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import IO, Any

PIECE = 1 << 20
"""Characters that are read from the file at a time."""

MOST = 1 << 24
"""Characters of the longest value that `JsonStream.value` decodes."""

_SPACE = re.compile(r"[ \t\n\r]*")
_EDGE = re.compile(r'[\[\]{}"]')
_STOP = re.compile(r'["\\]')
_SCALAR = re.compile(r"[^\s,\]}]*")
_LONGEST_SCALAR = 10_000  # a longer number is damage


class JsonError(ValueError):
    """Not JSON, or JSON that ends too early, with the place in the file."""


class TooLongError(ValueError):
    """A value that is longer than what is decoded.

    It can be skipped.
    """


class JsonStream:
    """A JSON text of which only the piece at hand is in memory.

    A caller walks through it: `peek` says what comes next, `keys` and `items` walk
    through objects and lists, and each of their values is either decoded (`value`) or
    passed over (`skip`).

    Parameters
    ----------
    file : text file
        Read once, from its position to its end.

    Examples
    --------
    >>> from io import StringIO
    >>> from spscanner_lab.evidence.json_stream import JsonStream
    >>> stream = JsonStream(StringIO('{"ids": [1, 2, 3], "name": "a"}'))
    >>> for key in stream.keys():
    ...     print(key, stream.skip() if key == "ids" else stream.value())
    ids 3
    name a
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._decoder = JSONDecoder()
        self._buffer = ""
        self._place = 0  # in the buffer
        self._passed = 0  # characters before the buffer
        self._at_end = False

    def peek(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            match = _SPACE.match(self._buffer, self._place)
            assert match is not None  # it matches nothing at all, too
            self._place = match.end()
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._read():
                return ""

    def keys(self) -> Iterator[str]:
        """Yield the keys of the object that comes next.

        The value of each must be taken before the next key.
        """
        for _ in self._parts("{", "}"):
            if self.peek() != '"':
                raise self._error("a key in quotes")
            key = self.value()
            self._take(":")
            yield key

    def items(self) -> Iterator[int]:
        """Yield the number of each item of the list that comes next.

        Each item must be taken before the next number.
        """
        return self._parts("[", "]")

    def value(self, n_characters: int = MOST) -> Any:  # noqa: ANN401 - as json.loads
        """Decode the value that comes next.

        `TooLongError` if it has more than ``n_characters`` characters; `JsonError`
        for what is not JSON.
        """
        if self.peek() not in ('"', "{", "["):
            return self._scalar()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._place)
            except (JSONDecodeError, RecursionError) as error:
                reason = str(error)
            else:
                self._place = end
                return value
            if len(self._buffer) - self._place > n_characters:
                raise TooLongError(f"more than {n_characters:,} characters")
            if not self._read():
                raise self._error(f"a value ({reason:.60})")

    def skip(self) -> int:
        """Pass over the value that comes next.

        Return how many items a list has.
        """
        first = self.peek()
        if first == '"':
            self._skip_string()
            return 0
        if first not in ("{", "["):
            self._scalar()
            return 0
        self._place += 1
        commas = 0
        is_empty = self.peek() in ("}", "]")
        depth = 1
        while depth:
            begun = self._place
            edge = _EDGE.search(self._buffer, begun)
            stop = len(self._buffer) if edge is None else edge.start()
            if depth == 1:
                commas += self._buffer.count(",", begun, stop)
            self._place = stop
            if edge is None:
                self._need()
            elif edge[0] == '"':
                self._skip_string()
            else:
                depth += 1 if edge[0] in "{[" else -1
                self._place += 1
        return 0 if is_empty else commas + 1

    def _scalar(self) -> Any:  # noqa: ANN401 - as json.loads
        """Decode a number, true, false or null."""
        while True:
            match = _SCALAR.match(self._buffer, self._place)
            assert match is not None
            # a number may go on in the next piece
            if match.end() < len(self._buffer) or not self._read():
                break
            if len(self._buffer) - self._place > PIECE + _LONGEST_SCALAR:
                raise self._error("a number")
        try:
            value = self._decoder.decode(match[0])
        except ValueError:
            raise self._error("a value") from None
        self._place = match.end()
        return value

    def _skip_string(self) -> None:
        self._place += 1
        while True:
            stop = _STOP.search(self._buffer, self._place)
            if stop is None:
                self._place = len(self._buffer)
                self._need()
            elif stop[0] == '"':
                self._place = stop.end()
                return
            else:
                # an escaped character, which may be in the next piece
                self._place = stop.end()
                while self._place >= len(self._buffer):
                    self._need()
                self._place += 1

    def _parts(self, opening: str, closing: str) -> Iterator[int]:
        self._take(opening)
        if self.peek() == closing:
            self._take(closing)
            return
        number = 0
        while True:
            yield number
            number += 1
            if self.peek() == closing:
                self._take(closing)
                return
            self._take(",")

    def _take(self, expected: str) -> None:
        if self.peek() != expected:
            raise self._error(repr(expected))
        self._place += 1

    def _need(self) -> None:
        """Read on, which must be possible."""
        if not self._read():
            raise self._error("more")

    def _read(self) -> bool:
        """Read a piece.

        Forget what is before the place.
        """
        if self._at_end:
            return False
        piece = self._file.read(max(PIECE, len(self._buffer) - self._place))
        if not piece:
            self._at_end = True
            return False
        self._passed += self._place
        self._buffer = self._buffer[self._place :] + piece
        self._place = 0
        return True

    def _error(self, expected: str) -> JsonError:
        place = self._passed + self._place
        following = self._buffer[self._place : self._place + 20]
        got = repr(following) if following else "the end of the file"
        return JsonError(f"expected {expected} at character {place:,}, got {got}")
