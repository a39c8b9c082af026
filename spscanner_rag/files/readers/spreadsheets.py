"""Reads spreadsheets: each row is a unit, read after the row that names its columns.

python-calamine reads the values, as Excel or LibreOffice last saved them. No formula is
computed and no macro is run.
"""

import datetime
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.cell_names import cell_name
from spscanner_rag.files.readers.html_values import without_html
from spscanner_rag.files.readers.sheet_facts import SheetFacts, facts_of_sheets
from spscanner_rag.files.readers.text_builder import (
    BETWEEN_CELLS,
    TextBuilder,
    looks_named,
)
from spscanner_rag.files.readers.zip_parts import (
    BROKEN,
    Package,
    TooLarge,
    archive_of,
    broken,
    has_media_type,
    has_part_below,
    unpacked_bytes,
)
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import LONGEST_UNIT

MOST_CELLS = 8_000_000
"""Most cells of the rectangle that holds a sheet's values, which are all stored."""

MOST_CHARACTERS = 20_000_000
_MOST_UNPACKED = 2**29  # bytes
_SHARE_OF_EMPTY = 3  # a row with more empty cells for each filled one shows none
_ROWS_LOOKED_AT = 20
_FEWEST_NAMED = 2
_DIGITS = 15  # of a number, as spreadsheets show them
_ODS = ("application/vnd.oasis.opendocument.spreadsheet",)
_OLD_EXCEL = "Workbook".encode("utf-16-le")  # the name of the stream in the file
_OLE = b"\xd0\xcf\x11\xe0"

_Stretch = list[tuple[int, list[str]]]  # rows without an empty one between them


def is_xlsx(data: bytes) -> bool:
    """Return whether a file is a workbook of Excel."""
    if data.startswith(_OLE):
        return _OLD_EXCEL in data and b"E\0n\0c\0r\0y\0p\0t" not in data
    return has_part_below(data, "xl/")


def is_ods(data: bytes) -> bool:
    """Return whether a file is a sheet of OpenDocument."""
    return has_media_type(data, _ODS)


def read_spreadsheet(data: bytes) -> TextFile:
    """Read the sheets of a workbook that are not hidden.

    ``ValueError`` if it is broken, encrypted or too large, ``ImportError`` without
    python-calamine.
    """
    calamine = import_extra("python_calamine", "reading spreadsheets", "files")
    import_extra("lxml.etree", "reading spreadsheets", "files")
    unpacked = unpacked_bytes(data)
    if unpacked > _MOST_UNPACKED:
        raise ValueError(
            f"got parts that unpack to {unpacked / 2**20:,.0f} MiB; expected at most"
            f" {_MOST_UNPACKED / 2**20:.0f} MiB: split the workbook"
        )
    try:
        facts = _facts(data)
        workbook = calamine.CalamineWorkbook.from_filelike(BytesIO(data))
        return _WorkbookText(workbook, facts).built.converted()
    except calamine.PasswordError:
        raise ValueError(
            "got a workbook with a password; expected one without: save it without"
        ) from None
    except (calamine.CalamineError, *BROKEN) as error:
        raise broken(error, "a workbook", "a spreadsheet program") from None


def _facts(data: bytes) -> dict[str, SheetFacts]:
    if data.startswith(_OLE):
        return {}
    with suppress(TooLarge):
        return facts_of_sheets(Package(archive_of(data)))
    return {}


class _WorkbookText:
    """Builds the text of a workbook."""

    def __init__(self, workbook: Any, facts: dict[str, SheetFacts]) -> None:  # noqa: ANN401
        self.built = TextBuilder()
        self._length = 0
        self._header: tuple[int, int] | None = None
        self._named_columns: set[int] = set()
        self._sheet = ""
        self._facts = SheetFacts()
        for metadata in workbook.sheets_metadata:
            self._sheet = metadata.name
            self._facts = facts.get(metadata.name, SheetFacts())
            if "Hidden" in str(metadata.visible):
                self.built.note(f"sheet {metadata.name} is hidden, and left out")
            elif self._facts.cells > MOST_CELLS:
                self.built.note(
                    f"sheet {metadata.name} is left out: its values lie in"
                    f" {self._facts.cells:,} cells, over {MOST_CELLS:,}"
                )
            else:
                self._add_sheet(workbook, metadata)

    def _add_sheet(self, workbook: Any, metadata: Any) -> None:  # noqa: ANN401
        self._header = None
        self.built.place(f"sheet {self._sheet}")
        self.built.heading(self._sheet, 1)
        if "WorkSheet" in str(metadata.typ):
            sheet = workbook.get_sheet_by_name(self._sheet)
            for stretch in self._stretches(sheet):
                self._add_stretch(stretch)
        for name, text in self._facts.comments:
            self.built.place(f"sheet {self._sheet}, comment on cell {name}")
            self.built.paragraph(text)
        for text in self._facts.drawn:
            self.built.place(f"sheet {self._sheet}, a drawing")
            self.built.paragraph(text)
        if self._facts.errors:
            self.built.note(
                f"sheet {self._sheet}: {self._facts.errors:,} cells that show an error"
                " are left out"
            )
        if self._facts.not_computed:
            self.built.note(
                f"sheet {self._sheet}: {self._facts.not_computed:,} formulas without"
                " their values are left out: save the workbook in a spreadsheet program"
            )

    def _stretches(self, sheet: Any) -> Iterator[_Stretch]:  # noqa: ANN401
        """Yield the runs of rows that have a value, with the number of each row."""
        first_row, first_column = sheet.start or (0, 0)
        if not sheet.height:
            return
        stretch: _Stretch = []
        for number, values in enumerate(sheet.iter_rows(), start=first_row):
            if self._length > MOST_CHARACTERS:
                self.built.note(
                    f"sheet {self._sheet}: row {number + 1:,} and those below are left"
                    f" out, after {MOST_CHARACTERS:,} characters"
                )
                break
            texts = self._shown(values, number, first_column)
            if any(texts):
                stretch.append((number, [""] * first_column + texts))
                self._length += sum(map(len, texts))
            elif stretch:
                yield stretch
                stretch = []
        if stretch:
            yield stretch

    def _shown(self, values: Sequence[object], row: int, first: int) -> list[str]:
        texts = [shown_value(value) for value in values]
        if not self._facts.percentages:
            return texts
        for column, value in enumerate(values, start=first):
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if (row, column) in self._facts.percentages:
                texts[column - first] = f"{shown_value(100 * value)}%"
        return texts

    def _add_stretch(self, stretch: _Stretch) -> None:
        """Add rows, and read the one that names columns with those below it."""
        for number, (row, texts) in enumerate(stretch):
            columns = [column for column, text in enumerate(texts) if text]
            if len(columns) == 1:
                name = cell_name(row, columns[0])
                self.built.place(f"sheet {self._sheet}, cell {name}")
                self.built.paragraph(texts[columns[0]])
                continue
            span = self._add_row(row, texts, columns)
            is_first = not number or len(list(filter(None, stretch[number - 1][1]))) < 2
            if is_first and self._names_columns(stretch, number):
                self._header = span
                self._named_columns = set(columns)

    def _names_columns(self, stretch: _Stretch, number: int) -> bool:
        rows: list[list[str]] = []
        for _, texts in islice(stretch, number, number + _ROWS_LOOKED_AT):
            rows.append(list(filter(None, texts)))
        return looks_named(rows, _FEWEST_NAMED)

    def _add_row(
        self, row: int, texts: Sequence[str], columns: Sequence[int]
    ) -> tuple[int, int]:
        first, last = columns[0], columns[-1]
        shown = list(range(first, last + 1))
        if len(shown) > (_SHARE_OF_EMPTY + 1) * len(columns):
            shown = list(columns)
        cells = f"{cell_name(row, first)}:{cell_name(row, last)}"
        self.built.place(f"sheet {self._sheet}, cells {cells}")
        text = BETWEEN_CELLS.join(texts[column] for column in shown)
        is_named = self._named_columns.issuperset(columns)
        span = self.built.row(text, self._header if is_named else None)
        if len(text) > LONGEST_UNIT:  # is cut, so each cell has its place
            offset = span[0]
            for column in shown:
                if offset > span[0]:
                    name = f"sheet {self._sheet}, cell {cell_name(row, column)}"
                    self.built.place_at(offset, name)
                offset += len(texts[column]) + len(BETWEEN_CELLS)
        return span


def shown_value(value: object) -> str:
    """The text of a value of a cell.

    Examples
    --------
    >>> shown_value(1250.0), shown_value(True), shown_value(datetime.date(1811, 3, 4))
    ('1250', 'TRUE', '1811-03-04')
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, datetime.datetime):
        has_time = value.time() != datetime.time()
        return value.isoformat(" ") if has_time else value.date().isoformat()
    return " ".join(without_html(str(value)).split())
