"""PDF to text, page by page, without running headers and footers; headings by the size of their letters."""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.apart import LEAST_SECONDS, Record, read_apart
from spscanner_rag.files.documents import PageStart, TextFile
from spscanner_rag.files.readers.pdf_pages import read_pages
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.extras import needed
from spscanner_rag.text.pages import page_bodies, sentence_goes_on
from spscanner_rag.text.typesetting import HYPHENS, LIGATURES, as_written

_LARGER = 1.15  # times the size of most letters, from which on a line is a heading
_SPACE, _WORD = re.compile(r"\s*"), re.compile(r"\S+")
_SENTENCE_ENDS = tuple(".,;:")


def read_pdf(
    name: str,
    data: bytes,
    seconds: float = LEAST_SECONDS,
    check: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TextFile:
    """Read a PDF; ``ValueError`` if broken, encrypted or without text, ``ImportError`` without pypdfium2.

    The pages that were read until its process had to end are the text, with a note; see `read_apart`. ``progress``
    gets the number of pages that were read, and of all.
    """
    needed("pypdfium2", f"{name}: reading PDF", "files")
    records: list[Record] = []
    for record in read_apart(read_pages, data, seconds, check):
        records.append(record)
        if progress and "pages" in records[0]:
            progress(len(records) - 1, records[0]["pages"])
    first, *pages = records or [{"broken": f"nothing in {seconds:.0f} seconds"}]
    return converted(name, first, pages)


def converted(name: str, first: Record, pages: Sequence[Record]) -> TextFile:
    """The text of the pages that were read, or a ``ValueError`` that says why there is none."""
    if "locked" in first:
        raise ValueError(
            f"{name}: got an encrypted PDF that needs a password; expected one that can be read: decrypt it "
            "first, for example with `qpdf --decrypt --password=...`"
        )
    if "pages" not in first:
        raise _broken(name, str(first.get("broken")))
    pages = [page for page in pages if "text" in page]
    count, labels = first["pages"], first["labels"]
    texts = [page["text"] for page in pages]
    unread = [number for number, page in enumerate(pages, start=1) if "broken_page" in page]
    if not any(text.strip() or page.get("values") for text, page in zip(texts, pages, strict=True)):
        if count and not pages:
            raise _broken(name, f"the first of {count} pages takes too much time or memory")
        raise ValueError(_no_text(name, count, unread))
    notes = _notes(texts, unread)
    if len(pages) < count:
        notes += (
            f"read {len(pages):,} of {count:,} pages, which took all the time or room for it: split it",
        )
    return _joined(pages, labels or [str(number) for number in range(1, count + 1)], notes)


def _joined(pages: Sequence[Record], labels: Sequence[str], notes: tuple[str, ...]) -> TextFile:
    """The pages as one text; a sentence that goes on over a page break is one sentence."""
    parts: list[str] = []
    starts: list[PageStart] = []
    blocks: list[Block] = []
    words: list[NDArray[np.int32]] = []
    length, before = 0, ""
    texts = [page["text"] for page in pages]
    spans = page_bodies(texts, list(range(1, len(texts) + 1)))
    bodies = as_written([text[start:end].strip() for text, (start, end) in zip(texts, spans, strict=True)])
    levels = _levels(pages)
    for number, (page, span, body) in enumerate(zip(pages, spans, bodies, strict=True), start=1):
        if before and body:
            parts.append("\n" if sentence_goes_on(before, body) else "\n\n")
            length += len(parts[-1])
        starts.append(PageStart(length, number, labels[number - 1]))
        words.append(_words(page, span, body, length))
        blocks += _headings(body, length, page.get("marked", {}), levels)
        values = "".join(f"\n\n{value}" for value in page.get("values", ()))
        body += values if body else values[2:] if not length else values
        parts.append(body)
        length += len(body)
        before = body or before
    return TextFile("", "".join(parts), tuple(blocks), tuple(starts), notes, np.concatenate(words))


def _words(page: Record, span: tuple[int, int], body: str, offset: int) -> NDArray[np.int32]:
    """Spans and boxes of the words of a page's body, whose divided words are joined: (n, 6)."""
    found = array("i")  # 24 bytes a word, of which a book has a million
    boxes, cursor = page.get("boxes", ()), 0
    for number, match in enumerate(_WORD.finditer(page["text"])):
        if not span[0] <= match.start() < span[1]:
            continue
        word = match.group().translate(LIGATURES)
        start = _SPACE.match(body, cursor).end()  # type: ignore[union-attr]
        cursor = start + len(word)
        if word[-1] in HYPHENS and body[cursor - 1 : cursor] != word[-1]:  # it is gone
            cursor -= 1
        found.extend((offset + start, offset + cursor, *boxes[4 * number : 4 * number + 4]))
    return np.array(found, np.int32).reshape(-1, 6)


def _levels(pages: Sequence[Record]) -> dict[float, int]:
    """The level of a heading by the size of its letters, the largest first; bold ones have negative sizes."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for size, characters in page.get("sizes", ()):
            sizes[size] += characters
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    marked = {size for page in pages for size in page.get("marked", {}).values()}
    large = sorted({abs(size) for size in marked if abs(size) >= _LARGER * body}, reverse=True)
    levels = {size: min(number, 6) for number, size in enumerate(large, start=1)}
    bold = {size: levels.get(-size, min(len(levels) + 1, 6)) for size in marked if size < 0 and -size >= body}
    return levels | bold


def _headings(
    body: str, offset: int, marked: Mapping[str, float], levels: Mapping[float, int]
) -> list[Block]:
    """The lines of a page that are headings; several lines of one size, one below the other, are one."""
    found: list[Block] = []
    start, goes_on = offset, False
    for line in body.split("\n"):
        words = " ".join(line.split())
        level = levels.get(marked.get(words, 0), 0)
        if level and any(map(str.isalpha, words)) and not words.endswith(_SENTENCE_ENDS):
            end = start + len(line.rstrip())
            if goes_on and found[-1].level == level:
                found[-1] = found[-1]._replace(end=end, title=f"{found[-1].title} {words}")
            else:
                first = start + len(line) - len(line.lstrip())
                found.append(Block(first, end, "heading", level=level, title=words))
            goes_on = True
        elif words:
            goes_on = False
        start += len(line) + 1
    return found


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


def _broken(name: str, reason: str) -> ValueError:
    return ValueError(
        f"{name}: got a PDF that cannot be read ({reason}); expected a whole one: download it again, or "
        "repair it, for example with `qpdf in.pdf out.pdf`"
    )
