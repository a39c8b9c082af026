"""The XML parts of a DOCX as trees, together no larger than a document is."""

import posixpath
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any

MOST_XML_BYTES = 32 * 2**20
"""Size of the unpacked parts that are read; a page of text is about 10,000 bytes of them."""

_MOST_FILES = 100_000  # in the archive

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = {"w": _WORD}
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"  # the same elements in the strict form
_KINDS = ("officeDocument", "styles", "numbering", "footnotes", "endnotes")

Element = Any
"""Of lxml."""


class TooLarge(Exception):  # noqa: N818 - what the document is
    """The parts unpack to more than is read."""


@lru_cache(256)  # a document has millions of few kinds
def word(tag: object) -> str:
    """The name of one of Word's elements; empty for others."""
    return tag.removeprefix(f"{{{_WORD}}}") if str(tag).startswith(f"{{{_WORD}}}") else ""  # type: ignore[attr-defined]


def attribute(element: Element, name: str, path: str = ".") -> str:
    """The value of one of Word's attributes, of an element or one at a path below it; empty if there is none."""
    found = None if element is None else element.find(path, NAMES)
    return "" if found is None else str(found.get(f"{{{_WORD}}}{name}", ""))


def value(element: Element, path: str = ".") -> str:
    """The value of a property of one value."""
    return attribute(element, "val", path)


def properties(element: Element, path: str) -> dict[str, Element]:
    """The properties at a path by their names, looked at once: a document has hundreds of thousands."""
    found = None if element is None else element.find(path, NAMES)
    return {} if found is None else {word(each.tag): each for each in found}


def switched(text: str) -> bool:
    """True for what does not say that it is off."""
    return text not in ("0", "false", "off", "none")


def is_on(element: Element, path: str, default: bool = False) -> bool:
    """True for a property that is switched on; one without a value is."""
    found = None if element is None else element.find(path, NAMES)
    return default if found is None else switched(attribute(found, "val"))


def archive_of(data: bytes) -> zipfile.ZipFile:
    """The archive in the content of a file; ``BadZipFile`` if it is broken or has too many files."""
    if data.count(b"PK\x01\x02") > _MOST_FILES:
        raise zipfile.BadZipFile(f"more than {_MOST_FILES:,} files")
    return zipfile.ZipFile(BytesIO(data))


class Package:
    """The parts of a document."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._unpacked = 0

    def tree(self, part: str) -> Element:
        """The root of a part, None if it is not there; `TooLarge` if all that were read are."""
        from lxml import etree

        if part not in self._archive.NameToInfo:
            return None
        info = self._archive.getinfo(part)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("a part is packed in a way that Word does not know")
        self._unpacked += info.file_size  # reading it never gives more bytes than it says here
        if self._unpacked > MOST_XML_BYTES:
            raise TooLarge(
                f"got parts that unpack to {self._unpacked / 2**20:,.0f} MiB; expected at most "
                f"{MOST_XML_BYTES / 2**20:.0f} MiB of text"
            )
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
        )
        root = etree.fromstring(self._archive.read(info).replace(_STRICT, _WORD.encode()), parser)
        if root.getroottree().docinfo.doctype:
            raise ValueError("a part declares a type of document, as no word processor does")
        return root

    def targets(self, part: str) -> Mapping[str, str]:
        """The parts that a part, or the whole package, names, by the last word of their kind."""
        folder, name = posixpath.split(part)
        root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, str] = {}
        for one in () if root is None else root.iter("{*}Relationship"):
            kind = one.get("Type", "").rsplit("/", 1)[-1]
            path = posixpath.normpath(posixpath.join("/", folder, one.get("Target", "")))[1:]
            named = (
                kind in _KINDS and one.get("TargetMode") != "External" and path in self._archive.NameToInfo
            )
            if named and kind not in found:
                found[kind] = path
        return found
