"""Reads mails that Outlook saved (MSG), by python-oxmsg."""

import struct
from datetime import datetime
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.mail_text import (
    MOST_LISTED,
    Attachment,
    MailText,
    header_shown,
)
from spscanner_rag.files.readers.zip_parts import broken
from spscanner_rag.system.install_hints import import_extra

_OLE = b"\xd0\xcf\x11\xe0"
_STREAMS = "__substg1.0_".encode("utf-16-le")  # the names of a mail's streams
_COMPRESSED_RTF = 0x1009  # the property with such a body
_SENDER = 0x0C1A  # the property with the name of the sender
_BROKEN = (
    ValueError,
    LookupError,
    OSError,
    AssertionError,
    AttributeError,
    TypeError,
    struct.error,
    RecursionError,
    NotImplementedError,
)


def is_msg(data: bytes) -> bool:
    """Return whether a file is a mail of Outlook."""
    return data.startswith(_OLE) and _STREAMS in data


def read_msg(data: bytes) -> TextFile:
    """Read a mail of Outlook.

    ``ValueError`` if it is broken, ``ImportError`` without python-oxmsg.
    """
    oxmsg = import_extra("oxmsg", "reading MSG", "files")
    import_extra("lxml.etree", "reading MSG", "files")
    try:
        return _read(oxmsg.Message.load(data))
    except _BROKEN as error:
        raise broken(error, "an MSG", "Outlook") from None


def _read(message: Any) -> TextFile:  # noqa: ANN401 - oxmsg's
    mail = MailText()
    mail.headers(header_shown(message.subject), _headers(message))
    body = message.body
    page = message.html_body
    if body and body.strip():
        mail.plain(body)
    elif page:
        mail.html(b"\xef\xbb\xbf" + page.encode("utf-8", "replace"))
    elif message.properties.binary_prop_value(_COMPRESSED_RTF):
        mail.built.note("its body is compressed RTF, and left out: save it as EML")
    attachments: list[Attachment] = []
    for attachment in message.attachments[: MOST_LISTED + 1]:
        name = attachment.file_name or "without a name"
        attachments.append(Attachment(name, attachment.mime_type, attachment.size))
    mail.attachments(attachments)
    return mail.text()


def _headers(message: Any) -> dict[str, str]:  # noqa: ANN401 - oxmsg's
    recipients: list[str] = []
    for recipient in message.recipients:
        name = recipient.name
        address = recipient.email_address
        if address and address != name:
            name = f"{name} <{address}>".strip()
        recipients.append(name)
    sent: datetime | None = message.sent_date
    headers = {
        "From": message.sender or message.properties.str_prop_value(_SENDER) or "",
        "To": ", ".join(filter(None, recipients)),
        "Date": sent.isoformat(" ", "minutes") if sent else "",
    }
    shown: dict[str, str] = {}
    for name, value in headers.items():
        if value:
            shown[name] = header_shown(value)
    return shown
