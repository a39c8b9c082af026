"""DOCX to text: headings by the styles' names, numbers of lists, rows of tables, formulas, notes at the end.

lxml reads the XML parts in one pass without a tree. Changes count as accepted: inserted text is read, deleted
text is not. Pictures, comments, headers and footers are left out, and no other file is opened.
"""

import zipfile
import zlib

from spscanner_rag.files.documents import Converted
from spscanner_rag.files.readers.docx_lists import Lists, Styles
from spscanner_rag.files.readers.docx_parts import Package, TooLarge, archive_of
from spscanner_rag.files.readers.docx_text import WordText
from spscanner_rag.files.readers.text_builder import TextBuilder
from spscanner_rag.text.extras import needed

# KeyError for a part that is not there, RuntimeError for one with a password
_BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, RuntimeError, EOFError, OSError)


def read_docx(name: str, data: bytes) -> Converted:
    """Read a Word document; ``ValueError`` if broken or too large, ``ImportError`` without lxml."""
    etree = needed("lxml.etree", f"{name}: reading DOCX", "files")
    try:
        with archive_of(data) as archive:
            return _read(Package(archive))
    except TooLarge as error:
        raise ValueError(f"{name}: {error}: split the document, or save it as plain text") from None
    except (etree.XMLSyntaxError, *_BROKEN) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise ValueError(
            f"{name}: got a DOCX that cannot be read ({reason}); expected a whole Word document: open it in a "
            "word processor and save it again"
        ) from None


def _read(package: Package) -> Converted:
    main = package.targets("")["officeDocument"]
    parts = package.targets(main)
    styles = Styles()
    lists = Lists(styles)
    for kind, settings in (("styles", styles), ("numbering", lists)):
        package.read(parts.get(kind, ""), settings)
    built = TextBuilder()
    for part in (main, parts.get("footnotes"), parts.get("endnotes")):
        package.read(part or "", WordText(built, styles, lists))
    return built.converted()
