"""Reads EPUB books chapter by chapter, in the order of their spine.

Each chapter is read as a web page. No file outside the book is opened.
"""

import html
import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import read_html
from spscanner_rag.files.readers.text_builder import TextBuilder
from spscanner_rag.files.readers.zip_parts import (
    Element,
    Package,
    archive_of,
    errors_told,
    has_media_type,
    has_part_below,
    local_name,
    path_below,
    xml_root,
)

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_EPUB = ("application/epub+zip",)
_PAGES = {"application/xhtml+xml", "text/html", "application/x-dtbook+xml"}
_NAVIGATION = "application/x-dtbncx+xml"
_ENTITY = re.compile(rb"&(?!#|(?:amp|lt|gt|quot|apos);)(\w{2,31});")
_LONGEST_NAME = 80  # characters of a chapter's title in its place
_FACTS = ("title", "creator", "language", "date", "publisher")


class _Item(NamedTuple):
    """A file of the book, as its package lists it."""

    path: str
    media_type: str
    properties: str


def is_epub(data: bytes) -> bool:
    """Return whether a file is an EPUB book."""
    if has_media_type(data, _EPUB):
        return True
    return has_part_below(data, _CONTAINER)


def read_epub(data: bytes) -> TextFile:
    """Read the chapters of a book.

    ``ValueError`` if it is broken, encrypted or too large, ``ImportError`` without
    lxml.
    """
    with errors_told("EPUB", "an", "a program for books", "split the book"):
        return _Book(Package(archive_of(data))).text()


class _Book:
    """A book: its files, their order, and the titles of its chapters."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._encrypted = _encrypted_paths(package)
        container = package.tree(_CONTAINER, may_have_doctype=True)
        root_files = () if container is None else container.iter("{*}rootfile")
        root_file = next(iter(root_files), None)
        if root_file is None:
            raise ValueError("its container names no package")
        path = unquote(root_file.get("full-path", ""))
        self._folder = posixpath.dirname(path)
        self._root = package.tree(path, may_have_doctype=True)
        if self._root is None:
            raise ValueError(f"its package {path[:60]} is missing")
        self._items = self._listed_items()
        self._titles = self._chapter_titles()

    def _listed_items(self) -> dict[str, _Item]:
        items: dict[str, _Item] = {}
        for element in self._root.iter("{*}item"):
            path = path_below(self._folder, unquote(element.get("href", "")))
            media_type = element.get("media-type", "")
            properties = element.get("properties", "")
            items[element.get("id", "")] = _Item(path, media_type, properties)
        return items

    def _chapter_titles(self) -> dict[str, str]:
        """The titles of the table of contents by the file they lead to."""
        titles: dict[str, str] = {}
        for item in self._items.values():
            if item.media_type != _NAVIGATION and "nav" not in item.properties.split():
                continue
            root = _page_root(self._package.content(item.path))
            if root is not None:
                _add_titles(titles, root, posixpath.dirname(item.path))
        return titles

    def text(self) -> TextFile:
        """The text of all chapters, each of which is read once."""
        built = TextBuilder()
        self._add_metadata(built)
        paths: dict[str, None] = {}
        for reference in self._root.iter("{*}itemref"):
            item = self._items.get(reference.get("idref", ""))
            if item is not None and item.media_type in _PAGES:
                paths.setdefault(item.path)
        if not paths:
            raise ValueError("its package lists no chapter")
        for number, path in enumerate(paths, start=1):
            self._add_chapter(built, number, path)
        for item in self._items.values():
            is_page = item.media_type in _PAGES and "nav" not in item.properties.split()
            if is_page and item.path not in paths and item.path in self._package.names:
                built.note(f"{item.path} is left out: it is no chapter of the book")
        return built.converted()

    def _add_metadata(self, built: TextBuilder) -> None:
        for element in self._root.iterfind("{*}metadata/*"):
            name = local_name(element)
            if name in _FACTS and element.text and name not in built.metadata:
                built.metadata[name] = " ".join(element.text.split())

    def _add_chapter(self, built: TextBuilder, number: int, path: str) -> None:
        title = self._titles.get(path, "")
        name = f"chapter {number}"
        if title:
            name = f"chapter {number}, {title[:_LONGEST_NAME]}"
        if path in self._encrypted:
            built.note(f"{name} is left out: it is encrypted")
            return
        if path not in self._package.names:
            built.note(f"{name} is missing in the file")
            return
        built.place(name)
        built.end_headings()
        try:
            built.document(read_html(_as_html(self._package.content(path))))
        except ValueError as error:
            built.note(f"{name} is left out: {error}")


def _encrypted_paths(package: Package) -> set[str]:
    root = package.tree(_ENCRYPTION)
    paths: set[str] = set()
    for reference in () if root is None else root.iter("{*}CipherReference"):
        paths.add(path_below("", unquote(reference.get("URI", ""))))
    return paths


def _page_root(content: bytes) -> Element | None:
    """The root of an XHTML page, or None if it is no XML."""
    from lxml import etree

    def character(name: re.Match[bytes]) -> bytes:
        text = html.unescape(name[0].decode("ascii", "replace"))
        return text.encode("ascii", "xmlcharrefreplace")

    try:
        return xml_root(_ENTITY.sub(character, content))
    except (etree.XMLSyntaxError, ValueError):
        return None


def _as_html(content: bytes) -> bytes:
    """A page as HTML, in which ``<title/>`` and the like are closed."""
    from lxml import etree

    root = _page_root(content)
    if root is None:
        return content
    for element in root.iter("{*}*"):
        element.tag = local_name(element)
    etree.cleanup_namespaces(root)
    page: bytes = etree.tostring(root, method="html", encoding="utf-8")
    return b"\xef\xbb\xbf" + page


def _add_titles(titles: dict[str, str], root: Element, folder: str) -> None:
    for element in root.iter("{*}navPoint", "{*}a"):
        target = element.get("href", "")
        text = " ".join("".join(element.itertext()).split())
        if local_name(element) == "navPoint":
            content = element.find("{*}content")
            label = element.find("{*}navLabel")
            if content is None or label is None:
                continue
            target = content.get("src", "")
            text = " ".join("".join(label.itertext()).split())
        path = path_below(folder, unquote(target.partition("#")[0]))
        if text:
            titles.setdefault(path, text)
