"""Finds the broken links of a built site."""

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

SCHEMES = ("https", "http", "mailto", "data")


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the links and anchors of a tag."""
        for name, value in attrs:
            if value is not None and name in ("href", "src"):
                self.links.append(value)
            elif value is not None and (
                name == "id" or (tag == "a" and name == "name")
            ):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each broken link of a folder's pages.

    A link is broken if its file or anchor is missing, or if its form is wrong.

    Links to other sites are not followed; only their form is checked.
    """
    return list(
        dict.fromkeys(
            line
            for page in sorted(site.rglob("*.html"))
            for line in _broken(page, site)
        )
    )


def _broken(page: Path, site: Path) -> Iterator[str]:
    for link in _read(page).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            if parts.scheme not in SCHEMES or (
                parts.scheme.startswith("http") and "." not in parts.netloc
            ):
                yield f"{page.relative_to(site)}: {link}: no address of another site"
        elif page.name != "404.html" and (reason := _missing(page, parts, site)):
            yield f"{page.relative_to(site)}: {link}: {reason}"


def _missing(page: Path, parts: SplitResult, site: Path) -> str:
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site.resolve()) and target != page:
        return "outside the site"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if (
        anchor
        and target.suffix == ".html"
        and anchor not in _read(target).anchors | {"__toc", "__drawer"}
    ):
        return "no such heading"
    return ""


@cache
def _read(page: Path) -> _Page:
    parsed = _Page()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed
