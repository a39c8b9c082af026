"""Reads what programs embed whole in a Word document: web pages, mails, text.

Mail merges and report generators write such parts (``altChunk``), which Word turns into
paragraphs when it opens the document.
"""

from email import message_from_bytes, policy

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import read_html
from spscanner_rag.files.readers.text_builder import TextBuilder
from spscanner_rag.files.readers.zip_parts import Package, Relationship

_PAGES = (".html", ".htm", ".xhtml")
_MAILS = (".mht", ".mhtml", ".eml")
_TEXTS = (".txt",)


def add_embedded(
    built: TextBuilder, package: Package, chunk: Relationship | None
) -> None:
    """Add the text of an embedded part, or a note that it is left out."""
    if chunk is None:
        built.note("left out an embedded part that is not in the file")
        return
    name = chunk.path.lower()
    content = package.content(chunk.path)
    if name.endswith(_TEXTS):
        document: TextFile | None = TextFile("", content.decode("utf-8", "replace"))
    elif name.endswith(_MAILS) or content[:13].lower() == b"mime-version:":
        document = _page_of_mail(content)
    elif name.endswith(_PAGES) or b"<html" in content[:1024].lower():
        document = _page(content)
    else:
        document = None
    if document is None:
        built.note(
            f"left out the embedded part {chunk.path}, which is no web page that can be"
            " read: open the document in a word processor and save it again"
        )
    else:
        built.document(document)


def _page(content: bytes) -> TextFile | None:
    """A web page, or None if it cannot be read."""
    try:
        return read_html(content)
    except ValueError:
        return None


def _page_of_mail(content: bytes) -> TextFile | None:
    """The web page in a mail or web archive, if there is one."""
    message = message_from_bytes(content, policy=policy.default)
    for part in message.walk():
        if part.get_content_maintype() != "text":
            continue
        payload = part.get_payload(decode=True)
        if not isinstance(payload, bytes):
            continue
        if part.get_content_subtype() == "html":
            return _page(payload)
        return TextFile("", payload.decode("utf-8", "replace"))
    return None
