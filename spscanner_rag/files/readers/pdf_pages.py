"""The pages of a PDF, read in a process of its own, which its parent may end at any moment.

pypdf is what LlamaIndex's and LangChain's own PDF loaders use, so page labels are the same there; it is pure
Python under a BSD licence. Some files keep it busy for hours or fill the memory, and it cannot be told to stop.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spscanner_rag.files.apart import answer
from spscanner_rag.files.readers.text_builder import readable

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MOST_CHARACTERS = 20_000_000
"""Of all pages; of 10,000 pages of a book."""

_MOST_FIELDS = 10_000  # typed values of a form
_LONGEST_VALUE = 10_000  # in characters
_MOST_PARENTS = 32  # of a field
_LONGEST_HEADING = 150  # in characters
_BOLD = ("bold", "black", "heavy")


def main() -> None:
    """Write a record for each page of a PDF, and one before them."""
    answer(read_pages)


def read_pages(data: bytes) -> Iterator[dict[str, Any]]:
    """The number and labels of the pages, or why there are none; then each page."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(io.BytesIO(data))  # it tries the empty password
        if reader.is_encrypted and not reader.decrypt(""):
            yield {"locked": True}
            return
        count = len(reader.pages)
        yield {"pages": count, "labels": _labels(reader, count)}
        yield from _all_pages(reader, count)
    except DependencyError:
        yield {"aes": True}
    except Exception as error:  # pypdf raises many kinds for broken files
        yield {"broken": f"{type(error).__name__}: {error}"[:120]}


def _all_pages(reader: "PdfReader", count: int) -> Iterator[dict[str, Any]]:
    from pypdf.errors import DependencyError

    known: dict[object, dict[str, Any]] = {}  # a page that is in the document several times
    values = FormValues()
    left = MOST_CHARACTERS
    for number in range(count):
        try:
            page = reader.pages[number]
            reference = page.indirect_reference
            key = reference.idnum if reference else -number - 1
            if key not in known:
                known = {key: _page(page)}
            found = {**known[key], "values": values.of(page)}
        except DependencyError:
            raise
        except Exception:  # MemoryError is one
            found = {"text": "", "broken_page": True}
        left -= len(found["text"])
        if left < 0:
            return
        yield found


def _page(page: "PageObject") -> dict[str, Any]:
    """The text of a page, how many of its characters have which size, and its lines in larger or bold letters."""
    sizes: Counter[float] = Counter()
    marked: dict[str, float] = {}

    def visit(text: str, cm: Any, tm: Any, font: Mapping[str, Any] | None, size: float) -> None:  # noqa: ANN401
        words = " ".join(text.split())
        if words:
            seen = round(abs(size * tm[3] * cm[3]) or abs(size), 1)
            sizes[seen] += len(words)
            bold = any(mark in str((font or {}).get("/BaseFont", "")).lower() for mark in _BOLD)
            for line in map(str.strip, text.splitlines()):
                if 1 < len(line) <= _LONGEST_HEADING:
                    marked[" ".join(line.split())] = -seen if bold else seen

    text = readable(page.extract_text(visitor_text=visit))
    body = sizes.most_common(1)[0][0] if sizes else 0
    larger = {line: size for line, size in marked.items() if size < 0 or size > body}
    return {"text": text, "sizes": list(sizes.items()), "marked": larger}


def _labels(reader: "PdfReader", number_of_pages: int) -> list[str]:
    """The labels of the pages in a viewer; empty where the file has no valid ones."""
    try:
        labels = [str(label) for label in reader.page_labels]
    except Exception:
        labels = []
    return labels if len(labels) == number_of_pages and all(label.strip() for label in labels) else []


class FormValues:
    """What was typed or chosen in the fields of a form, page by page, each field once."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def of(self, page: "PageObject") -> list[str]:
        """The fields of a page with a value, as "name: value", and text that was written on it."""
        found: list[str] = []
        annotations: Any = page.get("/Annots")
        for annotation in annotations.get_object() if annotations is not None else ():
            if len(self._seen) >= _MOST_FIELDS:
                break
            try:
                name, value = _field(annotation.get_object())
            except Exception:  # a broken field among others
                continue
            if value and (name, value) not in self._seen:
                self._seen.add((name, value))
                found.append(readable(f"{name}: {value}" if name else value))
        return found


def _field(annotation: Any) -> tuple[str, str]:  # noqa: ANN401 - an object of pypdf
    if annotation.get("/Subtype") == "/FreeText":
        return "", _text(annotation.get("/Contents"))
    if annotation.get("/Subtype") != "/Widget":
        return "", ""
    names: list[str] = []
    value = shown = kind = None
    field = annotation
    for _ in range(_MOST_PARENTS):
        value = field.get("/V") if value is None else value
        kind, shown = kind or field.get("/FT"), shown or field.get("/TU")
        if field.get("/T") is not None:
            names.insert(0, _text(field["/T"]))
        if "/Parent" not in field:
            break
        field = field["/Parent"].get_object()
    text = _text(value)
    if kind == "/Btn":
        text = "" if text == "/Off" else text.removeprefix("/")
    return _text(shown) or ".".join(names), "" if kind == "/Sig" else text


def _text(value: Any) -> str:  # noqa: ANN401 - an object of pypdf
    value = value.get_object() if hasattr(value, "get_object") else value
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value[:100])))
    if hasattr(value, "get_data"):  # a long value
        value = value.get_data().decode("utf-8", "replace")
    return " ".join(str(value).split())[:_LONGEST_VALUE] if value is not None else ""
