"""DOCX to text: headings by the styles' names, lists with their numbers, rows of tables, notes at the end.

The parts are XML in a ZIP archive, which lxml reads in one pass without a tree. Changes count as accepted:
inserted text is read, deleted text is not. Pictures, comments, headers and footers are left out, and no other file
is opened.
"""

import io
import posixpath
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from spscanner_rag.files.readers.builder import TextBuilder
from spscanner_rag.files.readers.docx_text import Styles, WordText
from spscanner_rag.files.structure import Converted

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_XML_BYTES = 32 * 2**20
"""Size of the unpacked parts; a page of text is about 10,000 bytes of them."""

_FEED = 2**16


def read_docx(name: str, data: bytes) -> Converted:
    """Read a Word document.

    Raises ``ValueError`` for a broken one and for one whose parts unpack to more than `MOST_XML_BYTES`,
    ``ImportError`` without lxml.
    """
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
    except (
        zipfile.BadZipFile,
        etree.XMLSyntaxError,
        KeyError,  # a part that is not there
        ValueError,
        RuntimeError,  # a part with a password
        NotImplementedError,
        EOFError,
        OSError,
        zlib.error,
    ) as error:
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


def _targets(archive: zipfile.ZipFile, part: str) -> "Mapping[str, str]":
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


def _feed(archive: zipfile.ZipFile, part: str, target: WordText) -> None:
    parser = _parser(target=target)
    with archive.open(part) as file:
        while piece := file.read(_FEED):
            parser.feed(piece)
    parser.close()
