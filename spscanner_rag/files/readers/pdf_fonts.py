"""A font for East Asian letters whose own font neither the PDF nor the machine has.

PDFium drops a letter without a glyph if it is drawn alone, as in the text of scanned
pages. The font here has one box for every letter. It is lent only where the machine
has no font for a language, and only its widths matter: those of the file take their
place.
"""

import ctypes
from base64 import b64decode
from functools import cache
from typing import Any, Final

_FONT: Final = b64decode(
    b"AAEAAAAKAIAAAwAgT1MvMkE2J8cAAAEoAAAAYGNtYXAAF7hsAAABkAAAAEBnbHlmue+57QAAAdgA"
    b"AAA0aGVhZDFlBNoAAACsAAAANmhoZWEHWgNyAAAA5AAAACRobXR4A+gAAAAAAYgAAAAGbG9jYQAa"
    b"AA0AAAHQAAAABm1heHAABAAGAAABCAAAACBuYW1luC6aLgAAAgwAAABmcG9zdAADAAAAAAJ0AAAA"
    b"IAABAAAAAQAAxTAi8V8PPPUAAwPoAAAAAOcy4IEAAAAA5zLggQAA/4gD6ANwAAAAAwACAAAAAAAA"
    b"AAEAAANw/4gAAAPoAAAAAAPoAAEAAAAAAAAAAAAAAAAAAAABAAEAAAACAAQAAQAAAAAAAgAAAAAA"
    b"AAAAAAAAAAAAAAAAAwPoAZAABQAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAD/////"
    b"+////+gf//8AfwAfPz8/PwAAACD//wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgAAAD6AAAAAAA"
    b"AAAAAAEAAwAKAAAADAANAAAAAAA0AAAAAAAAAAMAAAAgAADX/wAAAAEAAOAAAAD//QAAAAEAAgAA"
    b"AAL//wAAAAEAAAANABoAAAABAAD/iAPoA3AAAwAAFREhEQPoeAPo/BgAAAEAAP+IA+gDcAADAAAV"
    b"ESERA+h4A+j8GAAAAAAEADYAAQAAAAAAAQAJAAAAAQAAAAAAAgAHAAkAAwABBAkAAQASABAAAwAB"
    b"BAkAAgAOACJBbnlMZXR0ZXJSZWd1bGFyAEEAbgB5AEwAZQB0AHQAZQByAFIAZQBnAHUAbABhAHIA"
    b"AAADAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)
"""A TrueType font of two equal glyphs, whose "cmap" has one group, in format 13."""

_LENT: Final = 0x5150  # stands for the font where PDFium asks for its data
_EAST_ASIAN: Final = frozenset((128, 129, 134, 136))
"""Windows' numbers of Japanese, Korean, and simplified and traditional Chinese."""


class _Lender:
    """Answers for a machine's fonts, with the functions that PDFium asks."""

    def __init__(self, machine: Any) -> None:  # noqa: ANN401 - of ctypes
        self._own: dict[str, Any] = {}
        self._kept = []  # PDFium calls them as long as the process lives
        kinds = dict(machine._fields_)
        for name, method in _LENDING.items():
            kind = kinds[name]
            # a copy, since that of the structure changes with it
            address = ctypes.cast(getattr(machine, name), ctypes.c_void_p).value
            self._own[name] = kind(address)
            function = kind(getattr(self, method))
            self._kept.append(function)
            setattr(machine, name, function)

    def map_font(self, machine: Any, *wanted: Any) -> Any:  # noqa: ANN401
        """The font for what is wanted, which has its charset as third number."""
        font = self._own["MapFont"](machine, *wanted)
        charset = wanted[2]
        return _LENT if not font and charset in _EAST_ASIAN else font

    def data_of(
        self,
        machine: Any,  # noqa: ANN401
        font: int,
        table: int,
        buffer: Any,  # noqa: ANN401
        size: int,
    ) -> Any:  # noqa: ANN401
        """The length of a font, which is copied if there is room for it."""
        if font != _LENT:
            return self._own["GetFontData"](machine, font, table, buffer, size)
        if table:  # of a collection of fonts
            return 0
        if size >= len(_FONT):
            ctypes.memmove(buffer, _FONT, len(_FONT))
        return len(_FONT)

    def name_of(self, machine: Any, font: int, *buffer: Any) -> Any:  # noqa: ANN401
        """The length of a font's name."""
        if font == _LENT:
            return 0
        return self._own["GetFaceName"](machine, font, *buffer)

    def charset_of(self, machine: Any, font: int) -> Any:  # noqa: ANN401
        """The charset of a font."""
        return 0 if font == _LENT else self._own["GetFontCharset"](machine, font)

    def delete(self, machine: Any, font: int) -> None:  # noqa: ANN401
        """Forget a font."""
        if font != _LENT:
            self._own["DeleteFont"](machine, font)


_LENDING: Final = {
    "MapFont": "map_font",
    "GetFontData": "data_of",
    "GetFaceName": "name_of",
    "GetFontCharset": "charset_of",
    "DeleteFont": "delete",
}
"""The method in place of each function."""


@cache
def lend_font() -> _Lender | None:
    """Let PDFium of this process take the font, once.

    None if it has no fonts of a machine.
    """
    from pypdfium2 import raw

    info = raw.FPDF_GetDefaultSystemFontInfo()
    if not info:
        return None
    lender = _Lender(info.contents)
    raw.FPDF_SetSystemFontInfo(info)
    return lender
