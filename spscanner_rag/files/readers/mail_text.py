"""Builds the text of a mail: its subject, headers, lines, quoted replies, attachments.

Each line has its number as place. Marks of quotation are taken off the lines they
stand before, and the place says that they are quoted.
"""

import email.errors
import email.header
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import QUOTED, read_html
from spscanner_rag.files.readers.text_builder import BETWEEN_CELLS, TextBuilder

MOST_LISTED = 1_000  # attachments
_QUOTED = re.compile(r"(?:> ?)+")
_ATTRIBUTION = re.compile(r"\s*-{2,}\s*[^-\n]{3,60}\s*-{2,}\s*")
_KIB = 2**10


_LINE = re.compile(r"^[^\n]*$", re.MULTILINE)
_LONGEST_HEADER = 2_000  # characters


def header_shown(value: object) -> str:
    """A header as mail programs show it.

    Examples
    --------
    >>> header_shown("=?utf-8?q?Anne_M=C3=BCller?= <anne@example.org>")
    'Anne Müller <anne@example.org>'
    """
    text = str(value)[:_LONGEST_HEADER]
    try:
        text = str(email.header.make_header(email.header.decode_header(text)))
    except (LookupError, UnicodeError, ValueError, email.errors.MessageError):
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return " ".join(text.split())


class Attachment(NamedTuple):
    """A file that comes with a mail."""

    name: str
    media_type: str
    size: int  # in bytes


class _Line(NamedTuple):
    number: int  # from 1, in the body of the mail
    depth: int  # of quotation
    text: str


class MailText:
    """Collects the parts of a mail in order.

    Parameters
    ----------
    name : str
        Which mail it is, if it came with another; it is part of the places.
    """

    def __init__(self, name: str = "") -> None:
        self.built = TextBuilder()
        self._prefix = f"{name}, " if name else ""
        self._line = 1

    def headers(self, subject: str, headers: dict[str, str]) -> None:
        """Add the subject as a heading, and the other headers as one row."""
        self.built.metadata.update(headers)
        if subject:
            self.built.metadata["Subject"] = subject
            self.built.place(f"{self._prefix}subject")
            self.built.heading(subject, 1)
        fields = [f"{name}: {value}" for name, value in headers.items()]
        if fields:
            self.built.place(f"{self._prefix}headers")
            self.built.row(BETWEEN_CELLS.join(fields))

    def plain(self, text: str) -> None:
        """Add a plain body."""
        for lines in _paragraphs(self._numbered(text)):
            self._add_lines(lines)

    def html(self, page: bytes) -> None:
        """Add a body in HTML, read as a web page. Its lines are those of its text."""
        try:
            document = read_html(page, marks_quotations=True)
        except ValueError as error:
            self.built.note(f"a body in HTML is left out: {error}")
            return
        start = self.built.next_start()
        self.built.document(replace(document, places=()))
        if not document.text:
            return
        least_depth = 0
        for line in _LINE.finditer(document.text):
            is_quoted = document.place_name(line.start()) == QUOTED
            place = self._place(_Line(self._line, max(is_quoted, least_depth), line[0]))
            self.built.place_at(start + line.start(), place)
            self._line += 1
            if _ATTRIBUTION.fullmatch(line[0]):
                least_depth = 1

    def attachments(self, attachments: Sequence[Attachment]) -> None:
        """List the files that came with the mail, which are not read."""
        for attachment in attachments[:MOST_LISTED]:
            self.built.place(f"{self._prefix}attachments")
            size = f"{max(1, attachment.size // _KIB):,} KiB"
            self.built.row(
                f"Attachment: {attachment.name} ({attachment.media_type}, {size})"
            )
        if attachments:
            self.built.note(f"attachments are listed, not read ({len(attachments):,})")

    def text(self) -> TextFile:
        """The text of the mail."""
        return self.built.converted()

    def _numbered(self, text: str) -> Iterator[_Line]:
        """Yield the lines, with how deep each is quoted.

        What follows a line such as "-----Original Message-----" is quoted as well.
        """
        least_depth = 0
        for content in text.splitlines():
            number = self._line
            self._line += 1
            marks = _QUOTED.match(content)
            depth = marks[0].count(">") if marks else 0
            if marks:
                content = content[marks.end() :]
            yield _Line(number, max(depth, least_depth), content.rstrip())
            if not depth and _ATTRIBUTION.fullmatch(content):
                least_depth = 1

    def _add_lines(self, lines: Sequence[_Line]) -> None:
        """Add a paragraph, each of whose lines has its place."""
        self.built.place(self._place(lines[0]))
        offset = self.built.next_start()
        self.built.paragraph("\n".join(line.text for line in lines))
        for line, following in pairwise(lines):
            offset += len(line.text) + 1
            self.built.place_at(offset, self._place(following))

    def _place(self, line: _Line) -> str:
        quoted = ", quoted" if line.depth else ""
        return f"{self._prefix}line {line.number}{quoted}"


def _paragraphs(lines: Iterator[_Line]) -> Iterator[list[_Line]]:
    """Yield lines between empty ones that are quoted equally deep."""
    paragraph: list[_Line] = []
    for line in lines:
        has_text = bool(line.text.strip())
        goes_on = paragraph and line.depth == paragraph[-1].depth
        if paragraph and not (has_text and goes_on):
            yield paragraph
            paragraph = []
        if has_text:
            paragraph.append(line)
    if paragraph:
        yield paragraph
