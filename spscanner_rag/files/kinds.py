"""What kind of file it is: by how it begins where that is certain, else by its ending."""

import io
import zipfile
from pathlib import PurePath
from typing import Literal

Kind = Literal["text", "Markdown", "HTML", "PDF", "DOCX"]

KINDS: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".html": "HTML",
    ".htm": "HTML",
    ".xhtml": "HTML",
    ".pdf": "PDF",
    ".docx": "DOCX",
}
"""By ending. In a folder, files with these endings are read."""

MOST_BYTES: dict[Kind, int] = {
    "text": 256 * 2**20,
    "Markdown": 64 * 2**20,
    "HTML": 64 * 2**20,
    "PDF": 256 * 2**20,
    "DOCX": 256 * 2**20,
}
"""The largest files that are read."""

_BEGINNINGS = {
    b"\xd0\xcf\x11\xe0": "an old or an encrypted Office file",
    b"{\\rtf": "RTF",
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
}
_ARCHIVES = {
    "xl/workbook.xml": "an Excel workbook",
    "ppt/presentation.xml": "a PowerPoint presentation",
    "META-INF/container.xml": "an EPUB book",
    "content.xml": "an OpenDocument file",
}
_PAGES = (b"<!doctype html", b"<html")


def named_kind(path: str) -> Kind | None:
    """The kind that the ending of a path says; None for other endings."""
    return KINDS.get(PurePath(path).suffix.lower())


def kind_of(name: str, path: str, data: bytes) -> Kind:
    """The kind of a file.

    Raises ``ValueError`` for a kind that no reader takes, and for a file that is of another kind than its ending
    says.
    """
    said, seen = named_kind(path), _seen(data)
    if seen == "HTML" and said in ("text", "Markdown"):
        return said  # to be read as it is
    if seen in ("PDF", "DOCX", "HTML"):
        kind: Kind = seen  # type: ignore[assignment]
        if said not in (None, kind):
            right = next(ending for ending, other in KINDS.items() if other == kind)
            raise ValueError(
                f"{name}: got {kind}; expected {said}, as its ending says: give it the ending {right}"
            )
        return kind
    if seen is not None:
        raise ValueError(
            f"{name}: got {seen}; expected text, Markdown, HTML, PDF or DOCX: save it as one of these"
        )
    if said in ("PDF", "DOCX") and data:
        raise ValueError(
            f"{name}: got a file that does not begin as {said} does; expected {said}, as its ending says: check "
            "that it was saved whole, or give it the ending of what it is"
        )
    return said or "text"


def _seen(data: bytes) -> str | None:
    """What a file certainly is; None for text and for what is not known."""
    if b"%PDF-" in data[:1024] and not data.lstrip().startswith(b"<"):
        return "PDF"
    if data.startswith(b"PK\x03\x04"):
        return _archive(data)
    for beginning, kind in _BEGINNINGS.items():
        if data.startswith(beginning):
            return kind
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "HTML" if start.startswith(_PAGES) else None


def _archive(data: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return "a broken ZIP archive, as DOCX files are"
    if "[Content_Types].xml" in names and any(name.startswith("word/") for name in names):
        return "DOCX"
    return next((kind for part, kind in _ARCHIVES.items() if part in names), "a ZIP archive")
