"""HTML to text: what a page shows, without scripts, styles and markup.

libxml2 (lxml) reads the page and mends what is broken in it. Its events become text at once; no tree is built.
"""

import re

from spscanner_rag.files.readers.html_text import HtmlText, TooDeep
from spscanner_rag.files.structure import Converted

_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w-]{3,30})", re.IGNORECASE)
_META_WITHIN = 4096
# The encodings of the web that Python knows by the same name. Pages that say Latin-1 or ASCII mean Windows-1252.
_ENCODING = re.compile(
    r"utf-?8|iso-8859-\d+|windows-125\d|koi8-[ru]|shift_jis|euc-(jp|kr)|gbk|gb2312|gb18030|big5",
    re.IGNORECASE,
)
_WINDOWS = re.compile(r"iso-8859-1|latin-?1|(us-)?ascii|windows-1252", re.IGNORECASE)
_FEED = 2**14
"""Characters read at a time: the parser notices after each piece that it was stopped."""


def read_html(name: str, data: bytes) -> Converted:
    """Read a page.

    Raises ``ValueError`` for binary data and for elements that are nested absurdly deep, ``ImportError`` without
    lxml.
    """
    try:
        from lxml import etree
    except ImportError as error:
        raise ImportError(f'{name}: reading HTML needs lxml: pip install "spscanner-rag[files]"') from error

    page, target = _decoded(name, data), HtmlText()
    parser = etree.HTMLParser(target=target, encoding="utf-8", huge_tree=True)
    try:
        for start in range(0, len(page), _FEED):
            parser.feed(page[start : start + _FEED].encode("utf-8", "replace"))
        parser.close()
    except TooDeep as error:
        raise ValueError(f"{name}: {error}; expected a web page: check that it is the right file") from None
    except etree.XMLSyntaxError:  # a page without any element or text
        pass
    return target.converted()


def _decoded(name: str, data: bytes) -> str:
    """A page is in the encoding of its byte order mark, or that it names, or UTF-8, or Windows-1252."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise ValueError(f"{name}: got binary data (a zero byte at {data.index(0)}); expected HTML")
    named = _META.search(data[:_META_WITHIN])
    encoding = named[1].decode("ascii", "replace") if named else ""
    if _ENCODING.fullmatch(encoding) and not _WINDOWS.fullmatch(encoding):
        return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("windows-1252", "replace")
