"""What the parts of an XLSX say that its cells alone do not.

These are the extent of a sheet, cells shown as a percentage, comments, text boxes.
"""

import re
from dataclasses import dataclass, field

from spscanner_rag.files.readers.cell_names import cell_of
from spscanner_rag.files.readers.drawing_text import drawing_paragraphs
from spscanner_rag.files.readers.zip_parts import (
    Element,
    Package,
    attribute_of,
)

_CELL = re.compile(rb"<(?:\w{1,20}:)?c ([^>]{1,200})>")
_REFERENCE = re.compile(rb"""\br=["']([A-Z]{1,3}[1-9]\d{0,6})["']""")
_STYLE = re.compile(rb"""\bs=["'](\d{1,6})["']""")
_ERROR = re.compile(rb"""\bt=["']e["']""")
# A cell with a formula, but without its value.
_NO_VALUE = re.compile(
    rb"<(?:\w{1,20}:)?c ([^>]{1,200})>\s*"
    rb"<(?:\w{1,20}:)?f\b[^<>]{0,500}(?:/>|>[^<]{0,9000}</(?:\w{1,20}:)?f>)\s*"
    rb"(?:<(?:\w{1,20}:)?v\s*(?:/>|></(?:\w{1,20}:)?v>))?\s*</(?:\w{1,20}:)?c>"
)
_IS_TEXT = re.compile(rb"""\bt=["']str["']""")  # empty, as the formula says
_PERCENT_FORMATS = {"9", "10"}  # built into every spreadsheet
_LARGEST_SHEET = 2**28  # bytes of XML
_WORKBOOK = "xl/workbook.xml"


@dataclass(slots=True)
class SheetFacts:
    """What is known of a sheet beside the values of its cells."""

    cells: int = 0  # of the smallest rectangle that holds all values
    percentages: set[tuple[int, int]] = field(default_factory=set)  # row, column
    errors: int = 0  # cells that show an error
    not_computed: int = 0  # formulas whose value the file does not have
    comments: list[tuple[str, str]] = field(default_factory=list)  # cell, text
    drawn: list[str] = field(default_factory=list)  # paragraphs of boxes and charts


def facts_of_sheets(package: Package) -> dict[str, SheetFacts]:
    """The facts of each sheet of an XLSX by its name, empty for other files."""
    workbook = package.tree(_WORKBOOK)
    if workbook is None:
        return {}
    relationships = package.relationships(_WORKBOOK)
    percent_styles = _percent_styles(package)
    facts: dict[str, SheetFacts] = {}
    for sheet in workbook.iter("{*}sheet"):
        relationship = relationships.get(_relationship_id(sheet))
        if relationship is not None:
            name = sheet.get("name", "")
            facts[name] = _facts_of(package, relationship.path, percent_styles)
    return facts


def _relationship_id(element: Element) -> str:
    for name, content in element.attrib.items():
        if name.endswith("}id"):
            return str(content)
    return ""


def _percent_styles(package: Package) -> set[int]:
    """The numbers of the styles of cells that show a percentage."""
    root = package.tree("xl/styles.xml")
    if root is None:
        return set()
    formats = set(_PERCENT_FORMATS)
    for number_format in root.iter("{*}numFmt"):
        if "%" in number_format.get("formatCode", ""):
            formats.add(number_format.get("numFmtId", ""))
    styles: set[int] = set()
    for number, style in enumerate(root.iterfind("{*}cellXfs/{*}xf")):
        if style.get("numFmtId") in formats:
            styles.add(number)
    return styles


def _facts_of(package: Package, part: str, percent_styles: set[int]) -> SheetFacts:
    facts = SheetFacts()
    _count_cells(package, part, percent_styles, facts)
    for relationship in package.relationships(part).values():
        if relationship.kind == "comments":
            facts.comments += _comments(package.tree(relationship.path))
        elif relationship.kind == "drawing":
            facts.drawn += drawing_paragraphs(package, relationship.path)
    return facts


def _count_cells(
    package: Package, part: str, percent_styles: set[int], facts: SheetFacts
) -> None:
    least_row = least_column = 2**31
    most_row = most_column = -1
    sheet = package.raw(part, _LARGEST_SHEET)
    for formula in _NO_VALUE.finditer(sheet):
        facts.not_computed += _IS_TEXT.search(formula[1]) is None
    for cell in _CELL.finditer(sheet):
        attributes = cell[1]
        reference = _REFERENCE.search(attributes)
        place = cell_of(reference[1].decode()) if reference else None
        if place is None:
            continue
        row, column = place
        least_row = min(least_row, row)
        least_column = min(least_column, column)
        most_row = max(most_row, row)
        most_column = max(most_column, column)
        facts.errors += _ERROR.search(attributes) is not None
        style = _STYLE.search(attributes) if percent_styles else None
        if style and int(style[1]) in percent_styles:
            facts.percentages.add(place)
    if most_row >= 0:
        rows_and_columns = (most_row - least_row + 1, most_column - least_column + 1)
        facts.cells = rows_and_columns[0] * rows_and_columns[1]


def _comments(root: Element) -> list[tuple[str, str]]:
    """The comments of a sheet: the cell and the text of each."""
    comments: list[tuple[str, str]] = []
    for comment in () if root is None else root.iter("{*}comment"):
        runs = [run.text or "" for run in comment.iter("{*}t")]
        comments.append((attribute_of(comment, "ref"), " ".join("".join(runs).split())))
    return [comment for comment in comments if comment[1]]
