"""Reads mails (EML) with Python's own parser: headers, bodies, mails in them.

Attachments are listed, not read. No picture or page that a mail refers to is fetched.
"""

import email
import email.errors
import email.policy
from email.message import Message
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import read_html
from spscanner_rag.files.readers.mail_text import (
    Attachment,
    MailText,
    header_shown,
)
from spscanner_rag.files.readers.text_builder import TextBuilder

_HEADERS = ("From", "To", "Cc", "Date", "Reply-To")
_MOST_PARTS = 2_000
_MOST_MAILS = 100  # that came with a mail
_LEAST_SHARE = 0.5
"""A plain body with a smaller share of the words of the same body in HTML is a stub."""

_TOO_DEEP = (
    "got a mail whose parts are nested too deep; expected one that a mail program"
    " wrote: save it again"
)


def mail_work(data: bytes) -> int:
    """Return the bytes that a mail counts for.

    Each part inside another takes longer than those outside it.
    """
    return len(data) * (1 + data.count(b"multipart/") // 10)


def read_mail(data: bytes) -> TextFile:
    """Read a mail.

    ``ValueError`` if it has no header, or is nested too deep.
    """
    try:
        message = email.message_from_bytes(data, policy=email.policy.compat32)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if not any(message.get(name) for name in (*_HEADERS, "Subject", "Received")):
        raise ValueError(
            "got a file without the headers of a mail; expected a mail with From, To or"
            " Subject: check that it was saved completely"
        )
    return _Mail(message).text()


class _Mail:
    """A mail, and those that came with it, which are added after it."""

    def __init__(self, message: Message) -> None:
        self._mails = [message]  # still to be read
        self._parts = 0
        self._built = TextBuilder()

    def text(self) -> TextFile:
        number = 0
        while self._mails:
            name = f"attached mail {number}" if number else ""
            document = self._one(self._mails.pop(0), name)
            if not number:
                self._built.metadata.update(document.metadata)
            self._built.document(document)
            number += 1
            if number > _MOST_MAILS and self._mails:
                self._built.note(f"{len(self._mails):,} further mails are left out")
                break
        return self._built.converted()

    def _one(self, message: Message, name: str) -> TextFile:
        mail = MailText(name)
        headers: dict[str, str] = {}
        for header in _HEADERS:
            if value := _header(message, header):
                headers[header] = value
        mail.headers(_header(message, "Subject"), headers)
        attachments: list[Attachment] = []
        todo = [message]
        while todo:
            part = todo.pop()
            self._parts += 1
            if self._parts > _MOST_PARTS:
                mail.built.note(f"parts after the first {_MOST_PARTS:,} are left out")
                break
            todo += reversed(self._add_part(mail, part, attachments))
        mail.attachments(attachments)
        return mail.text()

    def _add_part(
        self, mail: MailText, part: Message, attachments: list[Attachment]
    ) -> list[Message]:
        """Add a part, and return the parts in it that are to be added."""
        kind = part.get_content_type()
        inner = part.get_payload()
        if kind == "message/rfc822" and isinstance(inner, list):
            self._mails += [child for child in inner if isinstance(child, Message)]
            return []
        if kind == "message/delivery-status" and isinstance(inner, list):
            for report in inner:
                mail.plain(_fields_of(report))
            return []
        if isinstance(inner, list):
            children = [child for child in inner if isinstance(child, Message)]
            if kind == "multipart/alternative":
                return _chosen(children)
            return children
        name = _file_name(part)
        is_attached = part.get_content_disposition() == "attachment"
        if is_attached or name or not kind.startswith("text/"):
            size = len(_content(part))
            attachments.append(Attachment(name or "without a name", kind, size))
        elif kind == "text/html":
            mail.html(_as_utf8(part))
        else:
            mail.plain(_text_of(part))
        return []


def _fields_of(report: object) -> str:
    """The lines of a report on the delivery of a mail."""
    fields = report.items() if isinstance(report, Message) else ()
    return "\n".join(f"{name}: {header_shown(value)}" for name, value in fields)


def _chosen(children: list[Message]) -> list[Message]:
    """The forms of one body that are read: the plain one, unless it is a stub."""
    plain = [child for child in children if child.get_content_type() == "text/plain"]
    others = [child for child in children if child not in plain]
    if not plain:
        return others[-1:]
    pages = [child for child in children if child.get_content_type() == "text/html"]
    if pages:
        words = len(_text_of(plain[0]).split())
        if words < _LEAST_SHARE * _words_of_page(pages[0]):
            return pages[:1]
    further = [child for child in others if child not in pages and child.is_multipart()]
    return plain[:1] + [child for child in further if _has_files(child)]


def _words_of_page(page: Message) -> int:
    """How many words a body in HTML has, 0 if it cannot be read."""
    try:
        return len(read_html(_as_utf8(page)).text.split())
    except ValueError:
        return 0


def _has_files(part: Message) -> bool:
    """Whether a form of the body, such as one with pictures, also has files."""
    children = part.get_payload()
    if not isinstance(children, list):
        return False
    return any(_file_name(child) for child in children if isinstance(child, Message))


def _content(part: Message) -> bytes:
    try:
        content: Any = part.get_payload(decode=True)
    except (ValueError, LookupError, email.errors.MessageError):
        content = part.get_payload()
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return content if isinstance(content, bytes) else b""


def _text_of(part: Message) -> str:
    content = _content(part)
    encoding = str(part.get_content_charset() or "utf-8")
    try:
        text = content.decode(encoding)
    except (LookupError, UnicodeError):
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = content.decode("windows-1252", "replace")
    if part.get_param("format") == "flowed":
        text = _unflowed(text, deletes=part.get_param("delsp") == "yes")
    return text


def _as_utf8(part: Message) -> bytes:
    """The page of a part, in an encoding that its reader knows."""
    return b"\xef\xbb\xbf" + _text_of(part).encode("utf-8", "replace")


def _unflowed(text: str, *, deletes: bool) -> str:
    """Join the lines of text that its sender wrapped (RFC 3676)."""
    lines: list[str] = []
    goes_on = False
    for line in text.splitlines():
        if line.startswith(" "):
            line = line[1:]
        if goes_on and not line.startswith(">") and line:
            lines[-1] += line
        else:
            lines.append(line)
        goes_on = line.endswith(" ") and line != "-- " and not line.startswith(">")
        if goes_on and deletes:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


def _file_name(part: Message) -> str:
    try:
        return header_shown(part.get_filename() or "")
    except (ValueError, LookupError, TypeError):
        return "with an unreadable name"


def _header(message: Message, name: str) -> str:
    """A header as mail programs show it."""
    return header_shown(message.get(name) or "")
