"""Text of drawings in Office documents: shapes, tables, diagrams and charts."""

from collections.abc import Iterator

from spscanner_rag.files.readers.notation import struck, struck_joined
from spscanner_rag.files.readers.zip_parts import (
    Element,
    Package,
    Relationship,
    local_name,
)

_LINE_BREAK = "\n"
_SKIPPED = {"Fallback", "instrText"}  # a Fallback repeats what is beside it
_DATA_OF_DIAGRAM = "diagramData"
_CHART = "chart"
_NOT_STRUCK = "noStrike"


def elements_shown(root: Element) -> Iterator[Element]:
    """The elements below a root in order, without the alternatives of others."""
    todo = [root]
    while todo:
        element = todo.pop()
        if local_name(element) in _SKIPPED:
            continue
        yield element
        todo += reversed(element)


def paragraph_text(paragraph: Element) -> str:
    """The text of an ``a:p`` with its line breaks."""
    parts: list[str] = []
    for element in elements_shown(paragraph):
        name = local_name(element)
        if name == "t":
            parts.append(_run_text(element))
        elif name == "br":
            parts.append(_LINE_BREAK)
        elif name == "tab":
            parts.append("\t")
    text = struck_joined("".join(parts))
    lines = [" ".join(line.split()) for line in text.split(_LINE_BREAK)]
    return _LINE_BREAK.join(line for line in lines if line)


def _run_text(element: Element) -> str:
    """The text of an ``a:t``, marked if its run is struck out."""
    text = element.text or ""
    look = element.getparent().find("{*}rPr")
    is_struck = look is not None and look.get("strike", _NOT_STRUCK) != _NOT_STRUCK
    return struck(text) if is_struck else text


def paragraphs_of(body: Element) -> list[str]:
    """The paragraphs with text of a text body."""
    paragraphs: list[str] = []
    for element in elements_shown(body):
        if local_name(element) == "p":
            text = paragraph_text(element)
            if text:
                paragraphs.append(text)
    return paragraphs


def drawing_paragraphs(package: Package, part: str) -> list[str]:
    """The paragraphs of a drawing's part, and of the charts and diagrams in it."""
    root = package.tree(part)
    paragraphs: list[str] = [] if root is None else paragraphs_of(root)
    for relationship in package.relationships(part).values():
        paragraphs += further_paragraphs(package, relationship)
    return paragraphs


def further_paragraphs(package: Package, relationship: Relationship) -> list[str]:
    """The paragraphs of a diagram or a chart that a drawing refers to."""
    if relationship.kind == _DATA_OF_DIAGRAM:
        root = package.tree(relationship.path)
        return [] if root is None else paragraphs_of(root)
    if relationship.kind == _CHART:
        root = package.tree(relationship.path)
        return [] if root is None else _chart_paragraphs(root)
    return []


def _chart_paragraphs(root: Element) -> list[str]:
    """The titles of a chart, and its series with their categories and values."""
    paragraphs = paragraphs_of(root)
    for series in root.iter("{*}ser"):
        names = _points(series, "tx")
        labels = _points(series, "cat") or _points(series, "xVal")
        numbers = _points(series, "val") or _points(series, "yVal")
        pairs = [": ".join(pair) for pair in zip(labels, numbers, strict=False)]
        longer = labels if len(labels) > len(numbers) else numbers
        pairs += longer[len(pairs) :]
        text = ", ".join(pairs)
        if names:
            text = f"{' '.join(names)}: {text}"
        if text:
            paragraphs.append(text)
    return paragraphs


def _points(series: Element, name: str) -> list[str]:
    parent = series.find(f"{{*}}{name}")
    values: list[str] = []
    for point in () if parent is None else parent.iter("{*}v"):
        if point.text and point.text.strip():
            values.append(point.text.strip())
    return values
