r"""Reads RTF: paragraphs, headings, rows of tables, notes, headers and footers.

Hidden and deleted text, pictures and embedded objects are not read. The groups of RTF
are on a stack of our own, so no nesting is too deep.
"""

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.notation import (
    RAISED,
    struck,
    struck_joined,
    whole_number,
)
from spscanner_rag.files.readers.text_builder import Cell, Row, TextBuilder, add_table

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])"
    rb"|([^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)
_BEGINNING = b"{\\rtf"
MOST_GROUPS = 1_000_000  # open at a time
_MOST_SKIPPED = 100  # characters after a Unicode one
_HEADING = re.compile(r"heading ([1-9])\b", re.IGNORECASE)
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")

_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
}
_SYMBOLS = {b"~": " ", b"_": "\u2011", b"-": "", b"\n": "\n", b"\r": "\n"}
_SYMBOLS |= {b"{": "{", b"}": "}", b"\\": "\\", b"\t": "\t"}

_UNSEEN = set(
    "author background bkmkend bkmkstart blipuid buptim category colorschememapping"
    " colortbl comment company creatim datafield datastore defchp defpap do doccomm"
    " docvar doctemplate falt fldinst filetbl formfield generator gridtbl hlinkbase"
    " info keywords latentstyles levelnumbers leveltext lfolevel list listlevel"
    " listname listoverride listoverridetable listpicture liststylename listtable"
    " mailmerge manager nextfile nonesttables nonshppict objalias objclass objdata"
    " objname objsect objtime operator panose password passwordhash pgp pgptbl pict"
    " picprop pn pnseclvl pntxta pntxtb printim propname protusertbl pxe revtbl revtim"
    " rsidtbl shprslt sn sp staticval subject sv tc template themedata txe ftnsep"
    " ftnsepc"
    " ftncn aftnsep aftnsepc aftncn upr userprops wgrffmtfilter windowcaption"
    " writereservhash xe xmlnstbl xmlopen xmlclose fontemb fontfile fname title"
    " annotation atnid atnauthor atntime atndate atnref atnicn atnparent atrfstart"
    " atrfend"
    " htmltag mhtmltag".split()
)
"""Destinations whose text no word processor shows on the page."""

_SHOWN_WITH_STAR = {"shpinst", "shptxt", "ud", "moMath", "moMathPara", "mmath"}
_NOTES = {"footnote"}
_EDGES = {
    "header": "page header",
    "headerl": "page header",
    "headerr": "page header",
    "headerf": "page header",
    "footer": "page footer",
    "footerl": "page footer",
    "footerr": "page footer",
    "footerf": "page footer",
}
_CODE_PAGES = {
    "77": "mac_roman",
    "128": "cp932",
    "129": "cp949",
    "130": "johab",
    "134": "gbk",
    "136": "big5",
    "161": "cp1253",
    "162": "cp1254",
    "163": "cp1258",
    "177": "cp1255",
    "178": "cp1256",
    "186": "cp1257",
    "204": "cp1251",
    "222": "cp874",
    "238": "cp1250",
    "254": "cp437",
    "255": "cp850",
}
"""Encodings of a font's letters by the number of its character set."""


class _Group(NamedTuple):
    """What holds for the text of a group."""

    unseen: bool = False
    hidden: bool = False
    deleted: bool = False
    struck: bool = False
    raised: bool = False
    only_rtf: bool = False  # repeats what a mail has in HTML
    font: str = ""
    skipped: int = 1  # characters that stand for a Unicode one before them
    destination: str = ""  # fonttbl, stylesheet, footnote, an edge, or the body

    @property
    def is_shown(self) -> bool:
        return not (self.unseen or self.hidden or self.deleted or self.only_rtf)


def begins_as_rtf(data: bytes) -> bool:
    """Return whether a file begins as RTF does."""
    return data.lstrip()[: len(_BEGINNING)] == _BEGINNING


def read_rtf(data: bytes) -> TextFile:
    """Read an RTF document.

    ``ValueError`` if it is not RTF or opens too many groups.
    """
    if not begins_as_rtf(data):
        raise ValueError("got a file that does not begin as RTF does; expected RTF")
    return _Rtf(data).text()


class _Rtf:
    """Builds the text of a document, token by token."""

    def __init__(self, data: bytes) -> None:
        self._built = TextBuilder()
        self._group = _Group()
        self._groups: list[_Group] = []
        self._bytes = bytearray()  # characters in the encoding of their font
        self._parts: dict[str, list[str]] = {"": []}  # by destination
        self._to_skip = 0
        self._star = False
        self._code_page = "cp1252"
        self._fonts: dict[str, str] = {}
        self._font = ""  # in the table of fonts
        self._style = ""  # in the table of styles
        self._heading_styles: dict[str, int] = {}
        self._level = 0
        self._cells: list[str] = []
        self._rows: list[Row] = []
        self._row_marked = False
        self._in_table = False
        self._edges: dict[str, str] = {}  # text -> its place
        self._comments = 0
        self._notes = 0
        self._action = self._actions()
        self._read(data)

    def text(self) -> TextFile:
        """The text of the document."""
        self._end_paragraph()
        self._end_table()
        for text, name in self._edges.items():
            self._built.place(name)
            self._built.paragraph(text)
        if self._comments:
            self._built.note(f"comments are left out ({self._comments:,})")
        return self._built.converted()

    def _actions(self) -> dict[str, Callable[[str], None]]:
        """What each control word does with its number."""
        return {
            "ansicpg": self._set_code_page,
            "f": self._set_font,
            "fcharset": self._set_character_set,
            "uc": self._set_skipped,
            "v": self._set_hidden,
            "deleted": self._set_deleted,
            "strike": self._set_struck,
            "striked": self._set_struck,
            "super": self._set_raised,
            "sub": self._set_level_with_line,
            "nosupersub": self._set_level_with_line,
            "htmlrtf": self._set_only_rtf,
            "plain": self._plain,
            "s": self._set_style,
            "outlinelevel": self._set_outline,
            "pard": self._reset_paragraph,
            "intbl": self._set_in_table,
            "trhdr": self._mark_row,
            "trowd": self._begin_row,
            "par": self._par,
            "sect": self._par,
            "page": self._par,
            "cell": self._cell,
            "nestcell": self._cell,
            "row": self._row,
            "nestrow": self._row,
            "chftn": self._number_note,
        }

    def _read(self, data: bytes) -> None:
        position = data.find(_BEGINNING)
        while match := _TOKEN.match(data, position):
            position = match.end()
            word, number, code, symbol, brace, letters = match.groups()
            if code is not None:
                self._add_byte(int(code, 16))
                continue
            self._decode()
            if brace is not None:
                if brace == b"{":
                    self._open()
                elif not self._close():
                    break
            elif word is not None:
                name = word.decode("ascii")
                if name == "bin":
                    position += max(0, int(number or 0))
                else:
                    self._control(name, number.decode() if number else "")
            elif symbol is not None:
                self._symbol(symbol)
            elif letters is not None:
                self._letters(letters)

    def _open(self) -> None:
        if len(self._groups) >= MOST_GROUPS:
            raise ValueError(
                f"got RTF with over {MOST_GROUPS:,} open groups; expected fewer"
            )
        self._groups.append(self._group)
        self._to_skip = 0
        self._star = False

    def _close(self) -> bool:
        """End a group, and return False at the end of the document."""
        ended = self._group
        if not self._groups:
            return False
        self._group = self._groups.pop()
        self._to_skip = 0
        if ended.destination != self._group.destination:
            self._end_destination(ended.destination)
        return bool(self._groups)

    def _end_destination(self, destination: str) -> None:
        text = _lines("".join(self._parts.pop(destination, [])))
        if destination in _EDGES and text:
            self._edges.setdefault(text, _EDGES[destination])
        elif destination in _NOTES and text:
            self._parts.setdefault("notes", []).append(text)

    def _add_byte(self, byte: int) -> None:
        if self._to_skip:
            self._to_skip -= 1
        else:
            self._bytes.append(byte)

    def _letters(self, letters: bytes) -> None:
        skipped = min(self._to_skip, len(letters))
        self._to_skip -= skipped
        self._bytes += letters[skipped:]
        self._decode()

    def _decode(self) -> None:
        if not self._bytes:
            return
        code_page = self._fonts.get(self._group.font) or self._code_page
        if self._group.destination == "fonttbl":
            code_page = "latin-1"
        self._show(self._bytes.decode(code_page, "replace"))
        self._bytes.clear()

    def _show(self, text: str) -> None:
        if self._group.destination == "stylesheet":
            if heading := _HEADING.match(text.strip()):
                self._heading_styles[self._style] = int(heading[1])
        elif self._group.destination != "fonttbl" and self._group.is_shown:
            self._parts.setdefault(self._group.destination, []).append(
                _as_it_looks(text, self._group)
            )

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._star = True
        elif symbol in _SYMBOLS:
            if symbol in b"\r\n":
                self._control("par", "")
            else:
                self._show(_SYMBOLS[symbol])

    def _control(self, name: str, number: str) -> None:
        star = self._star
        self._star = False
        if self._is_destination(name, star=star):
            return
        if name in _CHARACTERS:
            self._show(_CHARACTERS[name])
        elif name == "u":
            self._unicode(number)
        elif name in self._action:
            self._action[name](number)

    def _is_destination(self, name: str, *, star: bool) -> bool:
        """Begin a destination, if a word names one."""
        group = self._group
        if name == "annotation":
            self._comments += 1
        if name in _EDGES or name in _NOTES or name in ("fonttbl", "stylesheet"):
            self._group = group._replace(destination=name)
        elif name == "ud":
            self._group = group._replace(unseen=False)
        elif _is_unseen(name, star=star):
            self._group = group._replace(unseen=True)
        else:
            return False
        return True

    def _unicode(self, number: str) -> None:
        self._show(chr(int(number or 0) % 2**16))
        self._to_skip = self._group.skipped

    def _number_note(self, number: str) -> None:
        self._notes += self._group.destination not in _NOTES
        self._show(f"[{self._notes}]")

    def _set_font(self, number: str) -> None:
        self._font = number
        self._group = self._group._replace(font=number)

    def _set_character_set(self, number: str) -> None:
        self._fonts[self._font] = _CODE_PAGES.get(number, "")

    def _set_code_page(self, number: str) -> None:
        try:
            self._code_page = codecs.lookup(f"cp{number}").name
        except LookupError:
            self._code_page = "cp1252"

    def _set_skipped(self, number: str) -> None:
        skipped = whole_number(number, _MOST_SKIPPED, 1)
        self._group = self._group._replace(skipped=skipped)

    def _set_hidden(self, number: str) -> None:
        self._group = self._group._replace(hidden=number != "0")

    def _set_deleted(self, number: str) -> None:
        self._group = self._group._replace(deleted=number != "0")

    def _set_struck(self, number: str) -> None:
        self._group = self._group._replace(struck=number != "0")

    def _set_raised(self, number: str) -> None:
        self._group = self._group._replace(raised=number != "0")

    def _set_level_with_line(self, number: str) -> None:
        self._group = self._group._replace(raised=False)

    def _set_only_rtf(self, number: str) -> None:
        self._group = self._group._replace(only_rtf=number != "0")

    def _plain(self, number: str) -> None:
        self._group = self._group._replace(
            hidden=False, deleted=False, struck=False, raised=False
        )

    def _set_style(self, number: str) -> None:
        self._style = number
        if self._group.destination != "stylesheet":
            self._level = self._heading_styles.get(number, 0)

    def _set_outline(self, number: str) -> None:
        if self._group.destination != "stylesheet":
            self._level = whole_number(number, 9, 9) + 1

    def _reset_paragraph(self, number: str) -> None:
        self._level = 0
        self._in_table = False

    def _set_in_table(self, number: str) -> None:
        self._in_table = True

    def _mark_row(self, number: str) -> None:
        self._row_marked = True

    def _begin_row(self, number: str) -> None:
        self._row_marked = False

    def _par(self, number: str) -> None:
        if self._group.destination:
            self._show("\n")
        elif self._in_table:
            self._show(" ")
        else:
            self._end_paragraph()

    def _cell(self, number: str) -> None:
        if self._group.destination:
            self._show(" ")
            return
        self._cells.append(self._taken_text())

    def _row(self, number: str) -> None:
        row = Row(marked=self._row_marked, strong=False)
        for text in self._cells:
            row.cells.append(Cell(" ".join(text.split())))
        if row.cells:
            self._rows.append(row)
        self._cells = []

    def _taken_text(self) -> str:
        text = _lines("".join(self._parts[""]))
        self._parts[""] = []
        return text

    def _end_paragraph(self) -> None:
        text = self._taken_text()
        if text and self._cells:  # a row without its end
            self._cells.append(text)
            self._row("")
            text = ""
        if text:
            self._end_table()
            level = self._level if 0 < self._level <= 9 else 0
            if level:
                self._built.heading(text, level)
            else:
                self._built.paragraph(text)
        self._add_notes()

    def _end_table(self) -> None:
        if self._cells:
            self._row("")
        if self._rows:
            add_table(self._built, self._rows)
            self._rows = []
            self._add_notes()

    def _add_notes(self) -> None:
        if self._rows:
            return
        for text in self._parts.pop("notes", []):
            self._built.paragraph(text)


def _as_it_looks(text: str, group: _Group) -> str:
    """A text with signs for raised numbers and struck words."""
    if group.raised and text.isascii() and text.isdecimal():
        text = text.translate(RAISED)
    return struck(text) if group.struck else text


def _is_unseen(name: str, *, star: bool) -> bool:
    if name in _UNSEEN or name.endswith("Pr"):
        return True
    return star and name not in _SHOWN_WITH_STAR


def _lines(text: str) -> str:
    """The lines of a paragraph, without the white space around and between words."""

    def character(pair: re.Match[str]) -> str:
        return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")

    joined = _SURROGATES.sub(character, struck_joined(text))
    lines = [" ".join(line.split()) for line in joined.split("\n")]
    return "\n".join(line for line in lines if line)
