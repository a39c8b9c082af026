"""Reads presentations slide by slide: titles, text, tables, charts and notes.

The parts are read by lxml in bounds. No part outside the archive is opened.
"""

from collections import Counter
from collections.abc import Iterator

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.drawing_text import (
    elements_shown,
    further_paragraphs,
    paragraphs_of,
)
from spscanner_rag.files.readers.text_builder import Cell, Row, TextBuilder, add_table
from spscanner_rag.files.readers.zip_parts import (
    Element,
    Package,
    archive_of,
    attribute_of,
    errors_told,
    has_part_below,
    local_name,
)

_MOST_NAMED = 5  # in the note
_TITLES = {"title", "ctrTitle"}
_NOT_SHOWN = {"sldNum", "dt", "hdr"}  # of a page of notes; they repeat on each
_NUMBER = "sldNum"  # of a slide, which is its place
_EDGES = {"ftr", "dt"}  # of a slide; read once


def is_pptx(data: bytes) -> bool:
    """Return whether a file is a presentation of PowerPoint."""
    return has_part_below(data, "ppt/")


def read_slides(data: bytes) -> TextFile:
    """Read the slides of a presentation in their order.

    ``ValueError`` if it is broken or too large, ``ImportError`` without lxml.
    """
    with errors_told("PPTX", "a", "a presentation program", "split the presentation"):
        return _read(Package(archive_of(data)))


def _read(package: Package) -> TextFile:
    main = package.targets("")["officeDocument"]
    relationships = package.relationships(main)
    root = package.tree(main)
    built = TextBuilder()
    comments = 0
    edges: Counter[str] = Counter()  # how many slides have each footer or date
    for number, slide_id in enumerate(root.iter("{*}sldId"), start=1):
        relationship = relationships.get(_relationship_id(slide_id))
        if relationship is None:
            built.note(f"slide {number} is missing in the file")
            continue
        comments += _add_slide(built, package, relationship.path, number, edges)
    repeated = [f'"{text}"' for text, count in edges.items() if count > 1]
    if repeated:
        named = ", ".join(repeated[:_MOST_NAMED])
        built.note(f"repeated at edges of slides and read once: {named}")
    if comments:
        built.note(f"comments are left out (on {comments:,} slides)")
    return built.converted()


def _relationship_id(element: Element) -> str:
    for name, content in element.attrib.items():
        if name.endswith("}id"):
            return str(content)
    return ""


def _add_slide(
    built: TextBuilder,
    package: Package,
    part: str,
    number: int,
    edges: Counter[str],
) -> bool:
    """Add a slide, and return whether it has comments, which are left out."""
    root = package.tree(part)
    name = f"slide {number}"
    if root.get("show") in ("0", "false"):
        name = f"slide {number} (hidden)"
    built.place(name)
    built.end_headings()
    shapes = [shape for shape in _shapes(root) if _is_read(shape, edges)]
    shapes.sort(key=lambda shape: not _is_title(shape))
    relationships = package.relationships(part)
    for shape in shapes:
        _add_shape(built, shape)
    for relationship in relationships.values():
        for paragraph in further_paragraphs(package, relationship):
            built.paragraph(paragraph)
    has_comments = False
    for relationship in relationships.values():
        has_comments = has_comments or relationship.kind == "comments"
        if relationship.kind == "notesSlide":
            built.place(f"{name}, notes")
            _add_notes(built, package.tree(relationship.path))
    return has_comments


def _shapes(root: Element) -> Iterator[Element]:
    """Yield text bodies' shapes and tables in the order of the slide."""
    for element in elements_shown(root):
        is_shape = local_name(element) == "sp" and element.find("{*}txBody") is not None
        if is_shape or local_name(element) == "tbl":
            yield element


def _placeholder(shape: Element) -> str:
    for element in shape.iterfind("{*}nvSpPr/{*}nvPr/{*}ph"):
        return attribute_of(element, "type", "body")
    return ""


def _is_title(shape: Element) -> bool:
    return local_name(shape) == "sp" and _placeholder(shape) in _TITLES


def _is_read(shape: Element, edges: Counter[str]) -> bool:
    """Whether a shape is read: no number of a slide, and each footer once."""
    kind = "" if local_name(shape) == "tbl" else _placeholder(shape)
    if kind in _EDGES:
        text = " ".join(paragraphs_of(shape.find("{*}txBody")))
        edges[text] += bool(text)
        return edges[text] <= 1
    return kind != _NUMBER


def _add_shape(built: TextBuilder, shape: Element) -> None:
    if local_name(shape) == "tbl":
        _add_table(built, shape)
        return
    paragraphs = paragraphs_of(shape.find("{*}txBody"))
    if _is_title(shape) and paragraphs:
        built.heading(" ".join(paragraphs), 1)
        return
    for paragraph in paragraphs:
        built.item(paragraph)


def _add_table(built: TextBuilder, table: Element) -> None:
    properties = table.find("{*}tblPr")
    has_header = properties is not None and properties.get("firstRow") in ("1", "true")
    rows: list[Row] = []
    for row_element in table.iterfind("{*}tr"):
        row = Row(marked=has_header and not rows, strong=False)
        for cell in row_element.iterfind("{*}tc"):
            text = " ".join(" ".join(paragraphs_of(cell)).split())
            row.cells.append(Cell(text))
        rows.append(row)
    add_table(built, rows)


def _add_notes(built: TextBuilder, root: Element) -> None:
    for shape in _shapes(root):
        if local_name(shape) == "tbl":
            _add_table(built, shape)
        elif _placeholder(shape) not in _NOT_SHOWN:
            for paragraph in paragraphs_of(shape.find("{*}txBody")):
                built.paragraph(paragraph)
