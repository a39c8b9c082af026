"""Rows of results for spreadsheets: CSV in which no cell is a formula."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from spscanner_rag.text.escaping import csv_cell


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """CSV with a header; None is an empty cell."""
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(row[name]) for name in columns} for row in rows)
    return file.getvalue()


def section_cells(place: Mapping[str, object]) -> dict[str, object]:
    """The page and the headings of `TextFile.place` as two cells; None where the document has none."""
    headings = place.get("headings")
    joined = " > ".join(map(str, headings)) if isinstance(headings, list) else None
    return {"page": place.get("page"), "headings": joined or None}
