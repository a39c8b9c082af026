"""Markdown, as it is: the text stays, so that positions are those of the file, and its blocks are found.

Blocks are those of CommonMark, and tables as GitHub has them, found line by line without a tree: a parser of the
whole took 500 bytes of memory and 20 microseconds for each byte of short lines. Inline markup is not read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.text.blocks import Block

DEEPEST = 30
"""Lists and quotations within one another; further markers are text."""

_LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n|\\Z)")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MARKER = re.compile(r"[ \t]*(>|[-*+](?=[ \t]|$)|(\d{1,9})[.)](?=[ \t]|$))")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*+\1){2,}+[ \t]*+$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_DASHES = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_HTML = re.compile(
    r" {0,3}<(?:(!--)|(script|pre|style|textarea)\b|/?[a-z][\w-]*[\s/>]|/?[a-z][\w-]*$|[!?])", re.I
)
_PIPE = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r" {4}| {0,3}\t")


def read_markdown(name: str, data: bytes) -> TextFile:
    """Read a Markdown file; ``ValueError`` if it is not UTF-8."""
    text = decoded(name, data)
    return TextFile("", text, tuple(blocks_of(text)))


def blocks_of(text: str) -> list[Block]:
    """The blocks of a Markdown text, in order and disjoint."""
    begin, blocks = 0, []
    if front := _FRONT_MATTER.match(text):  # settings of a site generator
        begin = front.end()
        blocks.append(Block(0, len(front[0].rstrip()), "fence"))
    finder = _Blocks(text)
    for line in _LINE.finditer(text, begin):
        blocks += finder.line(line.start(), line.end())
    blocks += finder.end()
    return blocks


@dataclass(slots=True)
class _Line:
    start: int
    end: int  # with its line break
    text: str  # without markers of quotations and lists, and without the line break
    quoted: bool = False
    item: bool = False  # it begins an item of a list
    interrupts: bool = False  # it may begin one within a paragraph


class _Blocks:
    """Finds the blocks that end with each line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start: int | None = None  # of the paragraph, code or markup that is open
        self._stop = 0  # behind its last line
        self._contained = self._quoted = False  # the paragraph is in a list or a quotation
        self._in_list = False
        self._fence = ""  # the mark that ends the code
        self._in_code = False  # by indentation
        self._until: str | None = None  # what ends markup; empty for a blank line
        self._last = (0, 0)  # line of the paragraph
        self._last_text = ""
        self._header: tuple[int, int] | None = None  # of the table that is open

    def line(self, start: int, end: int) -> Iterator[Block]:
        """Read a line; yields the blocks that end before it or with it."""
        raw = self._text[start:end].rstrip("\r\n")
        if self._fence:
            yield from self._in_fence(raw, start, end)
            return
        line = self._without_markers(raw, start, end)
        if self._until is not None:
            if (not line.text.strip()) if not self._until else (self._until in raw.lower()):
                self._until = None
        elif not line.text.strip():
            yield from self._blank(line)
        elif self._in_code and _CODE.match(raw):
            self._stop = end
        else:
            yield from self._content(line, raw)

    def end(self) -> Iterator[Block]:
        if self._fence:
            self._fence = ""
            yield from self._block("fence")
        yield from self._end_paragraph()

    def _without_markers(self, raw: str, start: int, end: int) -> _Line:
        line, at = _Line(start, end, raw), 0
        for _ in range(DEEPEST):  # each looks at the rest of the line
            if _RULE.match(raw, at) or (at == 0 and _CODE.match(raw) and not self._in_list):
                break
            marker = _MARKER.match(raw, at)
            if marker is None:
                break
            at = marker.end()
            if marker[1] == ">":
                line.quoted = True
            else:
                line.item = True
                line.interrupts = line.interrupts or (marker[2] in (None, "1") and bool(raw[at:].strip()))
        if at or self._in_list:
            at += len(raw[at:]) - len(raw[at:].lstrip()) if self._in_list and not at else 0
            line.text = raw[at + 1 :] if at and raw[at : at + 1] in (" ", "\t") else raw[at:]
        return line

    def _blank(self, line: _Line) -> Iterator[Block]:
        if line.item:  # an item that begins with its next line
            yield from self._end_paragraph()
            self._in_list = True
        elif not self._in_code:
            yield from self._end_paragraph()
        self._header = None

    def _content(self, line: _Line, raw: str) -> Iterator[Block]:
        begins = line.item and (line.interrupts or self._start is None or self._in_list)
        indented = raw[:1] in (" ", "\t")
        if self._in_code or begins or (line.quoted and not self._quoted):
            yield from self._end_paragraph()
        if self._start is None and not (line.item or indented):
            self._in_list = False
        self._in_list = self._in_list or begins
        contained = begins or line.quoted or (self._in_list and self._start is None)
        ends = begins or (line.quoted and not self._quoted) or self._begins_other(line.text)
        if self._header and not ends:
            yield self._trimmed(line.start, line.end, "row", header=self._header)
            return
        self._header = None
        if found := _HEADING.match(line.text):
            yield from self._end_paragraph()
            yield self._heading(line.start, line.end, len(found[1]), _title(line.text[found.end() :]))
        elif fence := _FENCE.match(line.text):
            yield from self._end_paragraph()
            self._open(line, contained)
            self._fence = fence[1]
        elif self._start is not None and (under := _UNDERLINE.match(line.text)):
            title, first = self._text[self._start : self._stop], self._start
            self._start = None
            yield self._heading(first, line.end, 1 if under[1][0] == "=" else 2, _plain(title))
        elif _RULE.match(line.text):
            yield from self._end_paragraph()
        else:
            yield from self._prose(line, raw, contained)

    def _prose(self, line: _Line, raw: str, contained: bool) -> Iterator[Block]:
        """A line of a paragraph, of a table, of code or of markup."""
        if self._start is None:
            if _CODE.match(line.text) and not self._in_list:
                self._open(line, contained)
                self._in_code = True
            elif html := _HTML.match(line.text):
                self._until = "-->" if html[1] else f"</{html[2].lower()}" if html[2] else ""
                if self._until and self._until in raw.lower():
                    self._until = None
            else:
                self._open(line, contained)
        elif _is_header(self._last_text, line.text):
            start, end = self._last
            self._stop = start
            yield from self._end_paragraph()
            header = self._trimmed(start, end, "header")
            self._header = (header.start, header.end)
            yield self._trimmed(start, line.end, "header")
            return
        else:
            self._stop = line.end
        self._last, self._last_text = (line.start, line.end), line.text

    def _in_fence(self, raw: str, start: int, end: int) -> Iterator[Block]:
        """A line of code between fences; code in a list or a quotation ends with it."""
        bare = raw.lstrip(" \t>") if self._quoted else raw.strip()
        left = self._contained and bool(raw.strip()) and raw[0] not in " \t>"
        if left:
            self._fence = ""
            yield from self._block("fence")
            yield from self.line(start, end)
            return
        self._stop = end
        if bare.startswith(self._fence) and not bare.strip().strip(self._fence[0]):
            self._fence = ""
            yield from self._block("fence")

    def _begins_other(self, text: str) -> bool:
        return any(each.match(text) for each in (_HEADING, _FENCE, _RULE))

    def _open(self, line: _Line, contained: bool) -> None:
        self._start, self._stop = line.start, line.end
        self._contained, self._quoted = contained, line.quoted

    def _end_paragraph(self) -> Iterator[Block]:
        if self._in_code:
            self._in_code = False
            yield from self._block("fence")
        elif self._contained:
            yield from self._block("item")
        self._start, self._quoted = None, False

    def _block(self, kind: str) -> Iterator[Block]:
        if self._start is not None and self._text[self._start : self._stop].strip():
            yield self._trimmed(self._start, self._stop, kind)
        self._start = None

    def _trimmed(self, start: int, end: int, kind: str, header: tuple[int, int] | None = None) -> Block:
        content = self._text[start:end]
        first = start + len(content) - len(content.lstrip())
        return Block(first, start + len(content.rstrip()), kind, header=header)  # type: ignore[arg-type]

    def _heading(self, start: int, end: int, level: int, title: str) -> Block:
        return self._trimmed(start, end, "heading")._replace(level=level, title=title)


def _title(text: str) -> str:
    text = text.strip()
    bare = text.rstrip("#")
    return " ".join((bare if not bare or bare[-1] in " \t" else text).split())


def _plain(text: str) -> str:
    return " ".join(" ".join(line.lstrip(" \t>") for line in text.splitlines()).split())


def _is_header(text: str, dashes: str) -> bool:
    """True if a line of a paragraph is the header of a table, as the line of dashes below it says."""
    return "|" in text and bool(_DASHES.match(dashes)) and _columns(text) == _columns(dashes)


def _columns(line: str) -> int:
    line = line.strip().removeprefix("|")
    return len(_PIPE.findall(line)) + (0 if line.endswith("|") and not line.endswith("\\|") else 1)
