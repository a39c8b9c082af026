"""Reads the parts of Office documents and books from their ZIP archive, in bounds.

No part is unpacked beyond the limit, no entity is expanded, no other file is opened.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, NamedTuple

from spscanner_rag.system.install_hints import import_extra

MOST_XML_BYTES = 32 * 2**20
"""Most bytes of unpacked parts that are read; a page of text takes about 10,000."""

_MOST_FILES = 100_000  # in the archive
_ZIP = b"PK\x03\x04"
_MIMETYPE = "mimetype"
_LONGEST_REASON = 120  # characters

Element = Any
"""An element of lxml."""

BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,  # a missing part
    ValueError,
    RuntimeError,  # a part with a password
    EOFError,
    OSError,
    NotImplementedError,
)
"""What a damaged archive raises."""


class TooLarge(Exception):  # noqa: N818
    """The parts unpack to more bytes than are read."""


class Relationship(NamedTuple):
    """What a part of an Office document refers to."""

    kind: str  # the last word of its type
    path: str


def archive_of(data: bytes) -> zipfile.ZipFile:
    """The archive in the content of a file.

    ``BadZipFile`` if it is broken or has too many files.
    """
    if data.count(b"PK\x01\x02") > _MOST_FILES:
        raise zipfile.BadZipFile(f"more than {_MOST_FILES:,} files")
    return zipfile.ZipFile(BytesIO(data))


def unpacked_bytes(data: bytes) -> int:
    """Return the bytes of all parts, unpacked, or those of a file without parts."""
    with suppress(*BROKEN):
        return sum(part.file_size for part in archive_of(data).infolist())
    return len(data)


def has_part_below(data: bytes, folder: str) -> bool:
    """Whether a file is a ZIP archive with a part whose name begins with ``folder``."""
    if not data.startswith(_ZIP):
        return False
    with suppress(*BROKEN):
        return any(name.startswith(folder) for name in archive_of(data).namelist())
    return False


def has_media_type(data: bytes, media_types: Collection[str]) -> bool:
    """Whether a file is a ZIP archive whose ``mimetype`` is one of the media types.

    OpenDocument files and EPUB books say so in their first part.
    """
    if not data.startswith(_ZIP):
        return False
    with suppress(*BROKEN):
        archive = archive_of(data)
        longest = max(map(len, media_types)) + 2  # some end with a line break
        if archive.getinfo(_MIMETYPE).file_size <= longest:
            content = archive.read(_MIMETYPE).decode("ascii", "replace")
            return content.strip() in media_types
    return False


def broken(error: BaseException, kind: str, program: str) -> ValueError:
    """The error for a file of a kind that cannot be read."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
    return ValueError(
        f"got {kind} that cannot be read ({reason}); expected a complete file: open it"
        f" in {program} and save it again"
    )


@contextmanager
def errors_told(
    kind: str, article: str, program: str, when_too_large: str
) -> Iterator[None]:
    """Turn the errors of a package of XML into ones that say what to do.

    ``ImportError`` without lxml, ``ValueError`` for a broken or too large package.

    Parameters
    ----------
    kind, article : str
        The name of the format, such as "ODT", and the article before it.
    program : str
        What opens and saves such files.
    when_too_large : str
        What to do with one that is too large.
    """
    etree = import_extra("lxml.etree", f"reading {kind}", "files")
    try:
        yield
    except TooLarge as error:
        raise ValueError(f"{error}: {when_too_large}") from None
    except (etree.XMLSyntaxError, *BROKEN) as error:
        raise broken(error, f"{article} {kind}", program) from None


class Package:
    """The parts of a document.

    Parameters
    ----------
    archive : ZipFile
    renamed : mapping of bytes to bytes
        Names of namespaces that are replaced before a part is parsed.
    """

    def __init__(
        self, archive: zipfile.ZipFile, renamed: Mapping[bytes, bytes] | None = None
    ) -> None:
        self._archive = archive
        self._renamed = renamed or {}
        self._unpacked = 0
        self.names = archive.NameToInfo

    def content(self, part: str) -> bytes:
        """The bytes of a part, empty if it is missing.

        `TooLarge` if the parts read so far exceed the limit.
        """
        if part not in self.names:
            return b""
        info = self._archive.getinfo(part)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("a part is compressed by a method that is not in use")
        self._unpacked += info.file_size  # zipfile never reads more bytes than this
        if self._unpacked > MOST_XML_BYTES:
            raise TooLarge(
                f"got parts that unpack to {self._unpacked / 2**20:,.0f} MiB; expected"
                f" at most {MOST_XML_BYTES / 2**20:.0f} MiB of text"
            )
        return self._archive.read(info)

    def raw(self, part: str, most_bytes: int) -> bytes:
        """The bytes of a part of another limit, which is not parsed as XML."""
        if self._archive.getinfo(part).file_size > most_bytes:
            raise TooLarge(f"got a part over {most_bytes / 2**20:,.0f} MiB")
        return self._archive.read(part)

    def tree(self, part: str, *, may_have_doctype: bool = False) -> Element:
        """The root of a part, or None if it is missing.

        `TooLarge` if the parts read so far exceed the limit.
        """
        if part not in self.names:
            return None
        content = self.content(part)
        for name, new_name in self._renamed.items():
            content = content.replace(name, new_name)
        root = xml_root(content)
        if root.getroottree().docinfo.doctype and not may_have_doctype:
            raise ValueError("a part has a DOCTYPE, which no word processor writes")
        return root

    def relationships(self, part: str) -> dict[str, Relationship]:
        """What a part, or the package, refers to inside the archive, by its id."""
        folder, name = posixpath.split(part)
        root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Relationship] = {}
        for element in () if root is None else root.iter("{*}Relationship"):
            path = path_below(folder, element.get("Target", ""))
            if element.get("TargetMode") != "External" and path in self.names:
                kind = element.get("Type", "").rsplit("/", 1)[-1]
                key = element.get("Id", "") or path
                found.setdefault(key, Relationship(kind, path))
        return found

    def targets(self, part: str) -> Mapping[str, str]:
        """The parts that a part, or the package, refers to.

        Their keys are the last words of their relationships' types.
        """
        paths: dict[str, str] = {}
        for relationship in self.relationships(part).values():
            paths.setdefault(relationship.kind, relationship.path)
        return paths


def path_below(folder: str, reference: str) -> str:
    """The path in the archive that a reference from a folder means.

    Examples
    --------
    >>> path_below("ppt/slides", "../media/chart1.xml")
    'ppt/media/chart1.xml'
    """
    joined = posixpath.join("/", folder, reference)
    return posixpath.normpath(joined).lstrip("/")


def xml_root(content: bytes, *, huge: bool = False) -> Element:
    """Parse XML without comments, without loading or expanding anything."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=huge,
    )
    return etree.fromstring(content, parser)


def local_name(element: Element) -> str:
    """The name of an element without its namespace, empty for entities."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute_of(element: Element, name: str, default: str = "") -> str:
    """The value of an attribute whatever its namespace."""
    for qualified, content in element.attrib.items():
        if qualified.rpartition("}")[2] == name:
            return str(content)
    return default
