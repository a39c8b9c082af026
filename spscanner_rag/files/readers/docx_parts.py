"""The XML parts of a DOCX, read one after the other without a tree, together no larger than a document is."""

import posixpath
import zipfile
from collections.abc import Container, Mapping
from functools import lru_cache
from io import BytesIO

MOST_XML_BYTES = 32 * 2**20
"""Size of the unpacked parts that are read; a page of text is about 10,000 bytes of them."""

MOST_ELEMENTS = 3_000_000
"""Elements of one part."""

_MOST_FILES = 100_000  # in the archive
_FEED = 2**16

# The namespaces of Word's elements, of the usual and of the strict form.
_WORD = (
    "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}",
    "{http://purl.oclc.org/ooxml/wordprocessingml/main}",
)
_KINDS = ("officeDocument", "styles", "numbering", "footnotes", "endnotes")


class TooLarge(Exception):  # noqa: N818 - what the document is
    """The parts unpack to more than is read."""


@lru_cache(256)  # a document has millions of few kinds
def word(tag: str) -> str:
    """The name of one of Word's elements or attributes; empty for others."""
    return next((tag[len(space) :] for space in _WORD if tag.startswith(space)), "")


def word_attribute(attributes: Mapping[str, str], name: str) -> str:
    """The value of one of Word's attributes; empty if it is not there."""
    return next((value for own, value in attributes.items() if word(own) == name), "")


def value_of(attributes: Mapping[str, str]) -> str:
    """The value of a property of one value."""
    return word_attribute(attributes, "val") if attributes else ""


class PartReader:
    """A target of lxml's parser that takes one element after the other."""

    def __init__(self) -> None:
        self._elements = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            raise TooLarge(f"got a part of more than {MOST_ELEMENTS:,} elements; expected fewer")
        self.begin(word(tag), attributes)

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins; its name is empty if it is none of Word's."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def close(self) -> None:
        """The part ends."""


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

    def read(self, part: str, target: PartReader) -> None:
        """Read a part, or nothing if it is not there; `TooLarge` if all that were read are."""
        from lxml import etree

        if part not in self._archive.NameToInfo:
            return
        info = self._archive.getinfo(part)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("a part is packed in a way that Word does not know")
        self._unpacked += info.file_size  # reading it never gives more bytes than it says here
        if self._unpacked > MOST_XML_BYTES:
            raise TooLarge(
                f"got parts that unpack to {self._unpacked / 2**20:,.0f} MiB; expected at most "
                f"{MOST_XML_BYTES / 2**20:.0f} MiB of text"
            )
        parser = etree.XMLParser(target=target, resolve_entities=False, no_network=True, remove_comments=True)
        with self._archive.open(info) as file:
            while piece := file.read(_FEED):
                parser.feed(piece)
        parser.close()

    def targets(self, part: str) -> Mapping[str, str]:
        """The parts that a part, or the whole package, names, by the last word of their kind."""
        folder, name = posixpath.split(part)
        named = _Relationships(folder, self._archive.NameToInfo)
        self.read(posixpath.join(folder, "_rels", f"{name}.rels"), named)
        return named.found


class _Relationships(PartReader):
    def __init__(self, folder: str, parts: Container[str]) -> None:
        super().__init__()
        self._folder, self._parts = folder, parts
        self.found: dict[str, str] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        kind = attributes.get("Type", "").rsplit("/", 1)[-1]
        if kind in _KINDS and kind not in self.found and attributes.get("TargetMode") != "External":
            path = posixpath.normpath(posixpath.join("/", self._folder, attributes.get("Target", "")))[1:]
            if path in self._parts:
                self.found[kind] = path
