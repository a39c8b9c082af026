"""PDF to text, page by page, in the order in which a person reads it.

The letters of a page become strips of words (`pdf_letters`), these columns and lines
(`pdf_columns`), and these paragraphs, rows and footnotes (`pdf_paragraphs`), all in a
separate process. Then pages are joined (`pdf_joining`).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from spscanner_rag.files.apart import LEAST_SECONDS, Record, read_apart
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf_edges import BOTTOM, TOP
from spscanner_rag.files.readers.pdf_fonts import lend_font
from spscanner_rag.files.readers.pdf_forms import page_form
from spscanner_rag.files.readers.pdf_joining import joined_pages
from spscanner_rag.files.readers.pdf_letters import strips_of
from spscanner_rag.files.readers.pdf_lines import Line
from spscanner_rag.files.readers.pdf_ocr import Recognizer, recognized, recognizer
from spscanner_rag.files.readers.pdf_paragraphs import Paragraph, paragraphs_of
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.pages import EDGE_LINES

MOST_CHARACTERS = 20_000_000
"""Most characters on all pages together, about 10,000 pages of a book."""

MOST_PAGES = 50_000
"""Most pages; a file of few bytes may claim to have millions."""

MOST_BROKEN = 100
"""After so many broken pages in a row, no more are read: they may not exist."""

_LONGEST_LABEL = 100
_LEFT_OUT = {
    "line_numbers": "numbers of lines",
    "n_choices_left_out": "choices of lists in the form that are not shown",
    "n_comments": "comments",
    "n_unread": "annotations of pages with over 1,000",
}
"""What the record of a page counts of what its text lacks."""


def begins_as_pdf(data: bytes) -> bool:
    """Return whether a file begins as a PDF does, and not as markup."""
    return b"%PDF-" in data[:1024] and not data.lstrip().startswith(b"<")


def read_pdf(
    data: bytes,
    seconds: float = LEAST_SECONDS,
    check: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    ocr: str = "",
) -> TextFile:
    """Read a PDF, with OCR of pages without text in some languages.

    ``ValueError`` if broken, encrypted or without text, ``ImportError`` without
    pypdfium2, or without Tesseract for OCR.

    If its process has to end early, the text has the pages read until then, with a
    note; see `read_apart`. ``progress`` gets the number of pages read and the number of
    all pages.
    """
    import_extra("pypdfium2", "reading PDF", "files")
    records: list[Record] = []
    by = recognizer(ocr) if ocr else ()
    stream = read_apart(read_pages, data, seconds, check, *by)
    for record in islice(stream, MOST_PAGES + 1):
        records.append(record)
        if progress and "pages" in records[0]:
            progress(len(records) - 1, records[0]["pages"])
    first, *pages = records or [{"broken": f"nothing in {seconds:.0f} seconds"}]
    return converted(first, pages)


def converted(first: Record, pages: Sequence[Record]) -> TextFile:
    """The text of the pages that were read.

    If there is none, a ``ValueError`` that says why.
    """
    if "locked" in first:
        raise ValueError(
            "got an encrypted PDF that needs a password; expected one that can be read:"
            " decrypt it first, for example with `qpdf --decrypt --password=...`"
        )
    pages = [page for page in pages if "parts" in page]
    count = first.get("pages", 0)
    slow = (
        f"the first of {count} pages takes too much time or memory"
        if count and not pages
        else ""
    )
    if reason := first.get("broken", slow):
        raise ValueError(
            f"got a PDF that cannot be read ({reason}); expected a complete one:"
            " download it again, or repair it, for example with `qpdf in.pdf out.pdf`"
        )
    unread = [
        number for number, page in enumerate(pages, start=1) if "broken_page" in page
    ]
    if not any(page["parts"] or page.get("values") for page in pages):
        if pages and len(unread) == len(pages):
            raise ValueError(
                f"got a PDF whose {len(pages):,} pages are all broken; expected one"
                " that can be read"
            )
        raise ValueError(
            f"got a PDF without text on its {count} page{'' if count == 1 else 's'};"
            " expected text: scanned pages need OCR, `--ocr eng` (in Python,"
            ' `ocr="eng"`) for English ones'
        )
    notes = []
    if unread:
        notes.append(
            f"{len(unread)} of {len(pages)} pages are broken, the first is page"
            f" {unread[0]}"
        )
    empty = sum(not page["parts"] for page in pages) - len(unread)
    if 2 * empty > len(pages):
        notes.append(
            f"{empty} of {len(pages)} pages have no text; scanned pages need OCR, such"
            " as `--ocr eng` for English ones"
        )
    notes += _notes_on_pages(pages)
    if len(pages) < count and unread[-MOST_BROKEN:][:1] == [
        len(pages) - MOST_BROKEN + 1
    ]:
        notes.append(
            f"read {len(pages):,} of {count:,} pages: the last {MOST_BROKEN} are broken"
        )
    elif len(pages) < count:
        notes.append(
            f"read {len(pages):,} of {count:,} pages, which took all the allowed time"
            " or memory: split the file"
        )
    return joined_pages(pages, _labels(pages), tuple(notes))


def _notes_on_pages(pages: Sequence[Record]) -> Iterator[str]:
    """What was done to letters of the pages, and what of a form is left out."""
    for key, what in _LEFT_OUT.items():
        if count := sum(page.get(key, 0) for page in pages):
            yield f"{what} are left out ({count:,})"
    if recognized_pages := sum("ocr" in page for page in pages):
        yield (
            f"{recognized_pages} of {len(pages)} pages were read by OCR, which may"
            " mistake letters"
        )


def _labels(pages: Sequence[Record]) -> list[str]:
    """Labels of the pages, as a viewer shows them, or their numbers if one has none."""
    labels = []
    for number, page in enumerate(pages, start=1):
        labels.append(page.get("label", str(number)))
    if all(map(str.strip, labels)):
        return labels
    return [str(number) for number in range(1, len(pages) + 1)]


def opened(data: bytes) -> Any:  # noqa: ANN401 - a document of pypdfium2
    """The document, opened with the empty password.

    If it cannot be opened, a record that says why.
    """
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = error.err_code == pypdfium2.raw.FPDF_ERR_PASSWORD
        return {"locked": True} if locked else {"broken": str(error)[:120]}


def read_pages(
    data: bytes, program: str = "", languages: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the number of the pages, then each page.

    If there are none, yield why. Pages without text are recognized by a program, if it
    is named.
    """
    by = Recognizer(program, languages) if program else None
    lend_font()
    document = opened(data)
    if isinstance(document, dict):
        yield document
        return
    count = len(document)
    yield {"pages": count}
    document.init_forms()
    left = MOST_CHARACTERS
    broken = 0  # pages in a row
    for number in range(min(count, MOST_PAGES)):
        try:
            page = document[number]
            record = _page(page, by)
            record |= page_form(document.formenv, page)._asdict()
            record["label"] = document.get_page_label(number)[:_LONGEST_LABEL]
            page.close()
            broken = 0
        except Exception:  # MemoryError too
            record = {"parts": [], "broken_page": True}
            broken += 1
        left -= _characters(record)
        if left < 0:
            return
        yield record
        if broken == MOST_BROKEN:
            return


def _characters(record: Record) -> int:
    """How many characters of a page are read."""
    count = sum(map(len, record.get("values", ())))
    for part in record["parts"]:
        count += sum(len(text) for text, _ in part["lines"])
    return count


def _page(
    page: Any,  # noqa: ANN401 - of pypdfium2
    by: Recognizer | None,
) -> dict[str, Any]:
    """The paragraphs of a page, and which of their lines are at its edges.

    A line is its text and the boxes of its words in one flat list: left, bottom, right
    and top in tenths of a point. Sizes of bold letters are negative, and those of
    recognized ones 0, since they are not known well enough for headings.
    """
    rotation = page.get_rotation()
    strips = strips_of(page)
    is_recognized = False
    if by is not None and not strips:
        page.set_rotation(rotation)
        strips = recognized(page, by)
        is_recognized = bool(strips)
    paragraphs = paragraphs_of(strips)
    parts = []
    for paragraph in paragraphs:
        lines = []
        for line in paragraph.lines:
            lines.append((line.text, [edge for box in line.boxes for edge in box]))
        size = -paragraph.size if paragraph.bold else paragraph.size
        parts.append(
            {
                "lines": lines,
                "kind": paragraph.kind,
                "size": 0.0 if is_recognized else size,
                "table": paragraph.table,
            }
        )
    rows = _rows(paragraphs)
    record: dict[str, Any] = {
        "parts": parts,
        TOP: rows[:EDGE_LINES],
        BOTTOM: rows[: -EDGE_LINES - 1 : -1],
    }
    if is_recognized and parts:
        record["ocr"] = True
    if n_numbers := sum(paragraph.line_numbers for paragraph in paragraphs):
        record["line_numbers"] = n_numbers
    return record


def _rows(paragraphs: Sequence[Paragraph]) -> list[list[tuple[int, int]]]:
    """Lines of a page by height, those beside each other together.

    A line is the number of its paragraph, and its number in it.
    """
    lines: list[tuple[Line, tuple[int, int]]] = []
    for number, paragraph in enumerate(paragraphs):
        for line_number, line in enumerate(paragraph.lines):
            if not line.strips[0].turned:
                lines.append((line, (number, line_number)))
    lines.sort(key=lambda line: -line[0].bottom)
    rows: list[list[tuple[Line, tuple[int, int]]]] = []
    for line, place in lines:
        if rows and line.top > (rows[-1][0][0].bottom + rows[-1][0][0].top) / 2:
            rows[-1].append((line, place))
        else:
            rows.append([(line, place)])
    places = []
    for row in rows:
        row.sort(key=lambda line: line[0].left)
        places.append([place for _, place in row])
    return places
