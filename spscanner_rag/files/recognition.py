"""Finds the format of a file by the ending of its name and by its first bytes."""

from spscanner_rag.files.formats import (
    FORMATS,
    FileFormat,
    format_named_by,
    formats_in_words,
)

_ZIP = b"PK\x03\x04"
_UNREADABLE = {
    b"\xd0\xcf\x11\xe0": "an old or an encrypted Office file",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"II*\0": "a TIFF picture",
    b"MM\0*": "a TIFF picture",
    b"RIFF": "a WebP picture, a sound or a film",
    b"ID3": "a sound",
    b"OggS": "a sound",
    b"fLaC": "a sound",
    b"\x1aE\xdf\xa3": "a film",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x7fELF": "a program",
    b"MZ\x90": "a program",
    b"SQLite format 3": "a SQLite database",
    b"PAR1": "a Parquet file",
    b"\0asm": "a program",
    b"wOF2": "a font",
    b"%!PS": "PostScript",
}
"""Beginnings of files that no reader reads."""


def format_of(path: str, data: bytes) -> FileFormat:
    """Return the format of a file.

    Parameters
    ----------
    path : str
        Its name.
    data : bytes
        Its content.

    Raises
    ------
    ValueError
        If no reader reads it, or if its ending is that of another format.

    Examples
    --------
    >>> format_of("notes", b"<!DOCTYPE html><p>It rained.").name
    'HTML'
    """
    named = FORMATS.get(format_named_by(path) or "")
    recognized = _recognized(data)
    if recognized is not None:
        return _agreed(named, recognized)
    unreadable = _unreadable(data)
    if unreadable is not None:
        raise ValueError(
            f"got {unreadable}; expected {formats_in_words()}: save it as one of these"
        )
    if named is not None and named.is_binary and data:
        raise ValueError(
            f"got a file that does not begin as {named.name} does; expected"
            f" {named.name}, as its ending says: check that it was saved completely, or"
            " give it the right ending"
        )
    return named or FORMATS["text"]


def _agreed(named: FileFormat | None, recognized: FileFormat) -> FileFormat:
    """Return the format that both the name and the content of a file can have."""
    if named is None or named.name == recognized.name:
        return recognized
    if not recognized.is_binary and not named.is_binary:
        return named  # a text about HTML, say, as its ending says
    raise ValueError(
        f"got {recognized.name}; expected {named.name}, as its ending says: give it the"
        f" ending {recognized.endings[0]}"
    )


def _recognized(data: bytes) -> FileFormat | None:
    for file_format in FORMATS.values():
        if file_format.recognizes(data):
            return file_format
    return None


def _unreadable(data: bytes) -> str | None:
    """Return what an unreadable file is, or None for text and unknown files."""
    if data.startswith(_ZIP):
        names = [name for name, file_format in FORMATS.items() if file_format.is_zip]
        listed = f"{', '.join(names[:-1])} or {names[-1]}"
        return f"a ZIP archive that is not a complete {listed}"
    for beginning, name in _UNREADABLE.items():
        if data.startswith(beginning):
            return name
    return None
