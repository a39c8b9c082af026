"""Reads Jupyter notebooks cell by cell, with the text of their outputs.

Pictures and other binary outputs are counted in a note. No code is run.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.html import read_html
from spscanner_rag.files.readers.markdown import read_markdown
from spscanner_rag.files.readers.text_builder import TextBuilder, decoded

LONGEST_OUTPUT = 100_000
"""Most characters of an output that are read."""

_TERMINAL = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")  # colours of a traceback
_TEXTS = ("text/markdown", "text/plain", "text/latex", "text/html")


def read_notebook(data: bytes) -> TextFile:
    """Read a notebook.

    ``ValueError`` if it is none, or nested too deep.
    """
    try:
        notebook = json.loads(decoded(data))
    except RecursionError:
        raise ValueError(
            "got a notebook nested too deep; expected one that Jupyter wrote"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"got a file that is no valid JSON ({error}); expected a notebook: save it"
            " again in Jupyter"
        ) from None
    cells = list(_cells(notebook))
    if not cells:
        raise ValueError("got a file without cells; expected a notebook")
    reader = _Notebook()
    for number, cell in enumerate(cells, start=1):
        reader.add_cell(number, cell)
    return reader.text()


def _cells(notebook: object) -> Iterator[Mapping[str, Any]]:
    """Yield the cells, which are in worksheets before version 4."""
    if not isinstance(notebook, dict):
        return
    lists = [notebook.get("cells")]
    for sheet in _list_of(notebook.get("worksheets")):
        if isinstance(sheet, dict):
            lists.append(sheet.get("cells"))
    for cells in lists:
        for cell in _list_of(cells):
            if isinstance(cell, dict):
                yield cell


def _list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _joined(value: object) -> str:
    """Text that a notebook may have as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


class _Notebook:
    """Builds the text of a notebook."""

    def __init__(self) -> None:
        self._built = TextBuilder()
        self._left_out: dict[str, int] = {}  # media type -> number of outputs
        self._cut: list[int] = []  # cells with outputs that are too long

    def text(self) -> TextFile:
        """The text of all cells."""
        for media_type, count in self._left_out.items():
            self._built.note(f"outputs of type {media_type} are left out ({count:,})")
        if self._cut:
            cells = ", ".join(map(str, self._cut[:5]))
            self._built.note(
                f"outputs over {LONGEST_OUTPUT:,} characters are cut there"
                f" ({len(self._cut):,}, such as in cell {cells})"
            )
        return self._built.converted()

    def add_cell(self, number: int, cell: Mapping[str, Any]) -> None:
        """Add a cell with its outputs."""
        kind = cell.get("cell_type")
        source = _joined(cell.get("source", cell.get("input")))
        self._built.place(f"cell {number}")
        if not source.strip():
            pass
        elif kind in ("markdown", "heading"):
            self._built.document(read_markdown(source.encode("utf-8", "replace")))
        elif kind == "code":
            self._built.fence(source.strip("\n"))
        else:
            self._built.paragraph(source.strip())
        for output in _list_of(cell.get("outputs")):
            if isinstance(output, dict):
                self._built.place(f"cell {number}, output")
                self._add_output(number, output)

    def _add_output(self, number: int, output: Mapping[str, Any]) -> None:
        if output.get("output_type") == "error" or "traceback" in output:
            lines = [_joined([line]) for line in _list_of(output.get("traceback"))]
            text = "\n".join(lines)
            if not text:
                text = f"{output.get('ename')}: {output.get('evalue')}"
            self._add_text(number, _TERMINAL.sub("", text))
            return
        data = output.get("data")
        if not isinstance(data, dict):
            self._add_text(number, _TERMINAL.sub("", _joined(output.get("text"))))
            return
        for media_type in data:
            if not media_type.startswith("text/"):
                self._left_out[media_type] = self._left_out.get(media_type, 0) + 1
        if any(media_type.startswith("image/") for media_type in data):
            return  # its text only says that it is a picture
        for media_type in _TEXTS:
            text = _joined(data.get(media_type))
            if text.strip():
                self._add_form(number, media_type, text)
                return

    def _add_form(self, number: int, media_type: str, text: str) -> None:
        """Add one of the forms of an output."""
        if media_type == "text/html":
            page = text[:LONGEST_OUTPUT].encode("utf-8", "replace")
            self._cut += [number] * (len(text) > LONGEST_OUTPUT)
            try:
                self._built.document(read_html(b"\xef\xbb\xbf" + page))
            except ValueError as error:
                self._built.note(f"an output of cell {number} is left out: {error}")
        else:
            self._add_text(number, text)

    def _add_text(self, number: int, text: str) -> None:
        if len(text) > LONGEST_OUTPUT:
            self._cut.append(number)
        shown = text[:LONGEST_OUTPUT].strip("\n").rstrip()
        if shown.strip():
            self._built.fence(shown)
