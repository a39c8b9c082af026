"""DOCX to text: headings by the styles' names, numbered lists, rows of tables, notes at the end.

lxml reads the XML parts in one pass without a tree. Changes count as accepted: inserted text is read, deleted
text is not. Pictures, comments, headers and footers are left out, and no other file is opened.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from spscanner_rag.files.documents import Converted
from spscanner_rag.files.readers.text_builder import Table, TextBuilder

MOST_XML_BYTES = 32 * 2**20  # size of the unpacked parts; a page of text is about 10,000 bytes of them
_FEED = 2**16

# The namespaces of Word's elements, of the usual and of the strict form.
_WORD = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""A second form of a text box, for older programs."""

# KeyError for a part that is not there, RuntimeError for one with a password
_BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, EOFError, OSError)

_UNREAD = {"del", "moveFrom", "instrText", "delText"}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_MOST_PARENTS = 20  # styles that are based on each other; a circle ends here


def read_docx(name: str, data: bytes) -> Converted:
    """Read a Word document; ``ValueError`` if broken or beyond `MOST_XML_BYTES`, ``ImportError`` without lxml."""
    try:
        from lxml import etree
    except ImportError as error:
        raise ImportError(f'{name}: reading DOCX needs lxml: pip install "spscanner-rag[files]"') from error

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # Reading a part never gives more bytes than it says here.
            unpacked = sum(part.file_size for part in archive.infolist() if _is_xml(part.filename))
            if unpacked <= MOST_XML_BYTES:
                return _read(archive)
    except (etree.XMLSyntaxError, *_BROKEN) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise ValueError(
            f"{name}: got a DOCX that cannot be read ({reason}); expected a whole Word document: open it in a "
            "word processor and save it again"
        ) from None
    raise ValueError(
        f"{name}: got parts that unpack to {unpacked / 2**20:,.0f} MiB; expected at most "
        f"{MOST_XML_BYTES / 2**20:.0f} MiB of text: split the document, or save it as plain text"
    )


def _is_xml(name: str) -> bool:
    return name.endswith((".xml", ".rels"))


def _read(archive: zipfile.ZipFile) -> Converted:
    main = _targets(archive, "")["officeDocument"]
    parts = _targets(archive, main)
    styles = Styles(_tree(archive, parts.get("styles")), _tree(archive, parts.get("numbering")))
    built = TextBuilder()
    for part in (main, parts.get("footnotes"), parts.get("endnotes")):
        if part is not None:
            _feed(archive, part, WordText(built, styles))
    return built.converted()


def _targets(archive: zipfile.ZipFile, part: str) -> Mapping[str, str]:
    """The parts that a part, or the whole package, names, by the last word of their kind."""
    folder, name = posixpath.split(part)
    found: dict[str, str] = {}
    tree = _tree(archive, posixpath.join(folder, "_rels", f"{name}.rels"))
    for each in () if tree is None else tree:
        kind, target = each.get("Type", "").rsplit("/", 1)[-1], each.get("Target", "")
        path = (
            target.lstrip("/")
            if target.startswith("/")
            else posixpath.normpath(posixpath.join(folder, target))
        )
        if each.get("TargetMode") != "External" and path in archive.namelist():
            found.setdefault(kind, path)
    return found


def _parser(**options: Any) -> Any:  # noqa: ANN401 - lxml has no types
    from lxml import etree

    return etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, **options)


def _tree(archive: zipfile.ZipFile, part: str | None) -> Any:  # noqa: ANN401 - lxml has no types
    from lxml import etree

    return etree.fromstring(archive.read(part), _parser()) if part in archive.namelist() and part else None


def _feed(archive: zipfile.ZipFile, part: str, target: "WordText") -> None:
    parser = _parser(target=target)
    with archive.open(part) as file:
        while piece := file.read(_FEED):
            parser.feed(piece)
    parser.close()


@lru_cache(1024)  # a document has millions of few kinds
def _word(tag: str) -> str:
    """The name of one of Word's elements or attributes; empty for others."""
    return next((tag[len(space) :] for space in _WORD if tag.startswith(space)), "")


def _value(attributes: Mapping[str, str]) -> str:
    return next((value for name, value in attributes.items() if _word(name) == "val"), "")


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    style: str = ""
    outline: int = 0  # level of a heading, from 1; 0 for none
    number: str = ""  # of the list that it is an item of
    level: str = "0"  # in that list


class Styles:
    """Styles that are headings, and lists that have numbers, as styles.xml and numbering.xml say."""

    def __init__(self, styles: Any, numbering: Any) -> None:  # noqa: ANN401 - trees of lxml
        self._styles: dict[str, tuple[int, str, str]] = {}  # id -> level as heading, list, parent
        for each in () if styles is None else styles:
            if _word(str(each.tag)) == "style":
                found = {
                    _word(str(inner.tag)): _value(inner.attrib) for inner in each.iter() if inner is not each
                }
                self._styles[_attribute(each, "styleId")] = (
                    _level(found.get("name", ""), found.get("outlineLvl", "")),
                    found.get("numId", ""),
                    found.get("basedOn", ""),
                )
        self._bullets: dict[str, set[str]] = {}  # list -> its levels without numbers
        abstract: dict[str, set[str]] = {}
        for each in () if numbering is None else numbering:
            if _word(str(each.tag)) == "abstractNum":
                abstract[_attribute(each, "abstractNumId")] = {
                    _attribute(level, "ilvl")
                    for level in each
                    for inner in level
                    if _word(str(inner.tag)) == "numFmt" and _value(inner.attrib) in ("bullet", "none")
                }
            elif _word(str(each.tag)) == "num":
                of = next(
                    (_value(inner.attrib) for inner in each if _word(str(inner.tag)) == "abstractNumId"), ""
                )
                self._bullets[_attribute(each, "numId")] = abstract.get(of, set())

    def of(self, paragraph: _Paragraph) -> tuple[int, str]:
        """The level of a paragraph as a heading, 0 if it is none, and the list that it is an item of."""
        level, number, style = paragraph.outline, paragraph.number, paragraph.style
        for _ in range(_MOST_PARENTS):
            own_level, own_number, style = self._styles.get(style, (0, "", ""))
            level, number = level or own_level, number or own_number
        return level, "" if number == "0" else number

    def is_numbered(self, number: str, level: str) -> bool:
        """True if the items of a list have numbers on this level."""
        return level not in self._bullets.get(number, {level})


def _attribute(element: Any, name: str) -> str:  # noqa: ANN401 - lxml has no types
    return next((str(value) for own, value in element.attrib.items() if _word(own) == name), "")


def _level(name: str, outline: str) -> int:
    if match := _HEADING.fullmatch(name):
        return int(match[1])
    if name.lower() == "title":
        return 1
    return int(outline) + 1 if outline.isdecimal() and int(outline) < 9 else 0


class WordText:
    """A target of lxml's parser."""

    def __init__(self, built: TextBuilder, styles: Styles) -> None:
        self._built, self._styles = built, styles
        self._depth = 0
        self._unread_from: int | None = None  # depth of the element whose content is not read
        self._in_text = self._in_run = self._hidden = False
        self._open: list[_Paragraph] = []  # several where a text box is in a paragraph
        self._tables = 0  # open ones; the text of a table in a cell belongs to the cell
        self._table = Table(first_row_is_header=True)
        self._cells: list[str] = []
        self._cell: list[str] = []
        self._counted: dict[tuple[str, int], int] = {}  # (list, level) -> number of its last item

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._unread_from is not None:
            return
        name = _word(tag)
        if tag == _FALLBACK or name in _UNREAD:
            self._unread_from = self._depth
        elif name == "p":
            self._open.append(_Paragraph())
        elif name == "tbl":
            self._tables += 1
            if self._tables == 1:
                self._table = Table(first_row_is_header=True)
        elif name == "tr" and self._tables == 1:
            self._cells = []
        elif name == "tc" and self._tables == 1:
            self._cell = []
        elif name == "r":
            self._in_run, self._hidden = True, False
        elif name == "vanish" and self._in_run:
            self._hidden = _value(attributes) not in ("0", "false", "off")
        elif self._open:
            self._note(self._open[-1], name, attributes)

    def _note(self, paragraph: _Paragraph, name: str, attributes: Mapping[str, str]) -> None:
        """Note the content or a property of a paragraph."""
        match name:
            case "t":
                self._in_text = not self._hidden
            case "tab" if self._in_run:
                paragraph.parts.append(" ")
            case "br" | "cr":
                paragraph.parts.append("\n")
            case "noBreakHyphen":
                paragraph.parts.append("-")
            case "pStyle":
                paragraph.style = _value(attributes)
            case "numId":
                paragraph.number = _value(attributes)
            case "ilvl":
                paragraph.level = _value(attributes)
            case "outlineLvl":
                paragraph.outline = _level("", _value(attributes))

    def end(self, tag: str) -> None:
        """An element ends."""
        self._depth -= 1
        if self._unread_from is not None:
            if self._depth < self._unread_from:
                self._unread_from = None
            return
        match _word(tag):
            case "t":
                self._in_text = False
            case "r":
                self._in_run = self._hidden = False
            case "p" if self._open:
                self._end_paragraph(self._open.pop())
            case "tc" if self._tables == 1:
                self._cells.append(" ".join(" ".join(self._cell).split()))
            case "tr" if self._tables == 1:
                self._built.row(self._table, self._cells)
            case "tbl":
                self._tables -= 1

    def data(self, text: str) -> None:
        """Text between tags."""
        if self._in_text and self._unread_from is None and self._open:
            self._open[-1].parts.append(text)

    def close(self) -> None:
        """The part ends."""

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.parts).strip()
        if not text:
            return
        level, number = self._styles.of(paragraph)
        if number and not (level and not paragraph.number):
            text = self._marker(number, paragraph.level) + text
        if self._tables:
            self._cell.append(text)
        elif level:
            self._built.heading(text, level)
        else:
            self._built.paragraph(text)

    def _marker(self, number: str, level: str) -> str:
        """The text before an item: a dash, or its number in its list."""
        if not self._styles.is_numbered(number, level):
            return "- "
        depth = int(level) if level.isdecimal() else 0
        self._counted[number, depth] = self._counted.get((number, depth), 0) + 1
        for deeper in [key for key in self._counted if key[0] == number and key[1] > depth]:
            del self._counted[deeper]
        numbers = [self._counted.get((number, each), 1) for each in range(depth + 1)]
        return ".".join(map(str, numbers)) + ". "
