"""PDF to text, page by page, without running headers and footers.

pypdf is what LlamaIndex's and LangChain's own PDF loaders use, so page labels are the same there; it is pure
Python under a BSD licence, and a broken file raises an error in it instead of ending the program.
"""

import io
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spscanner_rag.files.documents import Converted, PageStart
from spscanner_rag.files.readers.text_builder import readable
from spscanner_rag.text.pages import page_bodies, sentence_goes_on
from spscanner_rag.text.typesetting import as_written

if TYPE_CHECKING:
    from pypdf import PdfReader

# pypdf logs what it mends; without a handler, Python would print it.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


def read_pdf(name: str, data: bytes) -> Converted:
    """Read a PDF; ``ValueError`` if broken, encrypted or without text, ``ImportError`` without pypdf."""
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise ImportError(f'{name}: reading PDF needs pypdf: pip install "spscanner-rag[files]"') from error

    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(io.BytesIO(data))  # it tries the empty password
        _unlock(name, reader)
        number_of_pages = len(reader.pages)
    except DependencyError:
        raise _encrypted_with_aes(name) from None
    except _Refused as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # pypdf raises many kinds for broken files
        raise _broken(name, error) from None
    texts, unread = [], []
    for number in range(number_of_pages):
        try:
            texts.append(readable(reader.pages[number].extract_text()))
        except DependencyError:
            raise _encrypted_with_aes(name) from None
        except Exception:
            texts.append("")
            unread.append(number + 1)
    if not any(text.strip() for text in texts):
        raise ValueError(_no_text(name, number_of_pages, unread))
    return _joined(texts, _labels(reader, number_of_pages), _notes(texts, unread))


class _Refused(Exception):  # noqa: N818 - the file is as its owner wants it
    """A PDF that is locked."""


def _unlock(name: str, reader: "PdfReader") -> None:
    """Open a PDF that anybody may read but not change; refuse one with a password for reading."""
    if reader.is_encrypted and not reader.decrypt(""):
        raise _Refused(
            f"{name}: got an encrypted PDF that needs a password; expected one that can be read: decrypt it "
            "first, for example with `qpdf --decrypt --password=...`"
        )


def _labels(reader: "PdfReader", number_of_pages: int) -> list[str]:
    """The labels of the pages in a viewer; their numbers where the file has no valid ones."""
    try:
        labels = [str(label) for label in reader.page_labels]
    except Exception:
        labels = []
    right = len(labels) == number_of_pages and all(label.strip() for label in labels)
    return labels if right else [str(number) for number in range(1, number_of_pages + 1)]


def _joined(texts: Sequence[str], labels: Sequence[str], notes: tuple[str, ...]) -> Converted:
    """The pages as one text; a sentence that goes on over a page break is one sentence."""
    parts: list[str] = []
    pages: list[PageStart] = []
    length, before = 0, ""
    spans = page_bodies(texts, list(range(1, len(texts) + 1)))
    bodies = as_written([text[start:end].strip() for text, (start, end) in zip(texts, spans, strict=True)])
    for number, body in enumerate(bodies, start=1):
        if before and body:
            parts.append("\n" if sentence_goes_on(before, body) else "\n\n")
            length += len(parts[-1])
        pages.append(PageStart(length, number, labels[number - 1]))
        parts.append(body)
        length += len(body)
        before = body or before
    return Converted("".join(parts), pages=tuple(pages), notes=notes)


def _notes(texts: Sequence[str], unread: Sequence[int]) -> tuple[str, ...]:
    notes = []
    if unread:
        notes.append(f"{len(unread)} of {len(texts)} pages are broken, the first is page {unread[0]}")
    empty = sum(not text.strip() for text in texts) - len(unread)
    if 2 * empty > len(texts):
        notes.append(f"{empty} of {len(texts)} pages have no text; scanned pages need OCR first")
    return tuple(notes)


def _no_text(name: str, pages: int, unread: Sequence[int]) -> str:
    if pages and len(unread) == pages:
        return f"{name}: got a PDF whose pages, {pages}, are all broken; expected one that can be read"
    count = f"{pages} page{'' if pages == 1 else 's'}"
    return (
        f"{name}: got a PDF without text on its {count}; expected text: scanned pages need OCR first, for "
        "example `ocrmypdf`"
    )


def _encrypted_with_aes(name: str) -> ValueError:
    return ValueError(
        f"{name}: got a PDF with AES encryption, which needs one more package; expected it after "
        "`pip install cryptography`, or decrypted, for example with `qpdf --decrypt`"
    )


def _broken(name: str, error: Exception) -> ValueError:
    reason = f"{type(error).__name__}: {error}"[:120]
    return ValueError(
        f"{name}: got a PDF that cannot be read ({reason}); expected a whole one: download it again, or "
        "repair it, for example with `qpdf in.pdf out.pdf`"
    )
