"""Reads YAML unchanged but for escapes: each record is a unit, its path is its place.

PyYAML finds where values begin and end. No value is built, so no alias is expanded and
no tag makes an object.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spscanner_rag.files.documents import PlaceStart, TextFile
from spscanner_rag.files.readers.base64_values import is_base64
from spscanner_rag.files.readers.json_records import (
    LONGEST_FIELD,
    MOST_DEPTH,
    are_sentences,
    step_to,
)
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import LONGEST_UNIT
from spscanner_rag.text.blocks import Block, in_order

_BASE64 = "(base64)"
# Marks of items, which belong to the record after them, and marks after a value.
_MARKS_BEFORE = re.compile(r"-(?:[\s-]|(?<=\s)[&!]\S+)*\Z")
_DASHES = re.compile(r"-(?:\s+-)*\s+")
_REACH = 200  # characters in which they are looked for
_MARKS_AFTER = re.compile(r"(?:[ \t]*[,\]}])*")
_WORK = 4


@dataclass(slots=True)
class _Node:
    """A value in the file."""

    kind: str  # "scalar", "list" or "fields"
    start: int
    end: int = 0
    children: list["_Node"] = field(default_factory=list)  # keys and values in turn
    text: str = ""  # of a scalar
    flow: bool = False  # whether a list is written in brackets


def yaml_work(data: bytes) -> int:
    """Return the bytes that YAML counts for, whose parser makes many small objects."""
    return _WORK * len(data)


def read_yaml(data: bytes) -> TextFile:
    """Read a YAML file, or read it as plain text if it is no valid YAML.

    ``ValueError`` if it is not UTF-8 or UTF-16, or nested too deep.
    """
    yaml = import_extra("yaml", "reading YAML", "files")
    source = decoded(data)
    reader = _Yaml(source)
    try:
        documents = list(reader.documents(_events(yaml, source)))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:200]
        note = f"it is no valid YAML ({reason}), and read as plain text"
        return TextFile("", source, notes=(note,))
    for number, document in enumerate(documents, start=1):
        name = f"document {number}, $" if len(documents) > 1 else "$"
        reader.add(document, name)
    return reader.text()


def _events(yaml: Any, source: str) -> Iterator[Any]:  # noqa: ANN401 - the package
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is faster
    return iter(yaml.parse(source, Loader=loader))


class _Yaml:
    """Finds the records of a text, and replaces its escapes."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._replaced: list[tuple[int, int, str]] = []  # start, end, new text
        self._rows: list[tuple[int, int]] = []
        self._marks: list[tuple[int, int]] = []  # at the beginning of rows
        self._places: list[tuple[int, str]] = []
        self._begin = -1  # start of keys that wait for their first record
        self._base64 = 0

    def documents(self, events: Iterator[Any]) -> Iterator[_Node]:
        """Yield the root of each document."""
        open_nodes: list[_Node] = []
        for event in events:
            kind = type(event).__name__
            start, end = event.start_mark.index, event.end_mark.index
            if kind in ("MappingStartEvent", "SequenceStartEvent"):
                if len(open_nodes) >= MOST_DEPTH:
                    raise ValueError(
                        f"got values nested more than {MOST_DEPTH} deep; expected"
                        " fewer: split the file"
                    )
                name = "fields" if kind == "MappingStartEvent" else "list"
                open_nodes.append(_Node(name, start, flow=bool(event.flow_style)))
                continue
            if kind in ("MappingEndEvent", "SequenceEndEvent"):
                node = open_nodes.pop()
                node.end = max(end, node.children[-1].end if node.children else end)
                node.end = self._trimmed_end(node.start, node.end)
            elif kind in ("ScalarEvent", "AliasEvent"):
                node = _Node("scalar", start, self._trimmed_end(start, end))
                node.text = getattr(event, "value", None) or ""
                self._replace(node, getattr(event, "style", None))
            else:
                continue
            if open_nodes:
                open_nodes[-1].children.append(node)
            else:
                yield node

    def _trimmed_end(self, start: int, end: int) -> int:
        return start + len(self._source[start:end].rstrip())

    def _replace(self, node: _Node, style: str | None) -> None:
        written = self._source[node.start : node.end]
        if is_base64(node.text):
            self._base64 += 1
            self._replaced.append((node.start, node.end, _BASE64))
        elif style == '"' and "\\" in written:
            shown = node.text.replace("\0", "\ufffd")
            self._replaced.append((node.start, node.end, f'"{shown}"'))

    def add(self, root: _Node, path: str) -> None:
        """Add the records below a root, without recursion."""
        todo = [(path, root)]
        while todo:
            path, node = todo.pop()
            if node.kind == "list":
                todo += reversed(self._list(path, node))
            elif node.kind == "fields" and not _is_record(node):
                todo += reversed(self._fields(path, node))
            else:
                self._row(path, node)

    def _list(self, path: str, node: _Node) -> list[tuple[str, _Node]]:
        is_short = node.end - node.start <= LONGEST_FIELD
        is_flat = all(child.kind == "scalar" for child in node.children)
        texts = [child.text for child in node.children if child.kind == "scalar"]
        if is_short and (is_flat or node.flow) and not are_sentences(texts):
            self._row(path, node)
            return []
        self._wait(node.start)
        items: list[tuple[str, _Node]] = []
        for number, child in enumerate(node.children):
            items.append((f"{path}[{number}]", child))
        return items

    def _fields(self, path: str, node: _Node) -> list[tuple[str, _Node]]:
        """The values of an object, each from its key, with short ones joined."""
        self._wait(node.start)
        items: list[tuple[str, _Node]] = []
        pairs = zip(node.children[::2], node.children[1::2], strict=False)
        for key, value in pairs:
            text = value.text if value.kind == "scalar" else ""
            moved = _Node(
                value.kind, key.start, value.end, value.children, text, value.flow
            )
            last = items[-1][1] if items else None
            if last and _goes_on(last, value):
                last.end = value.end
                items[-1] = (path, last)
                continue
            items.append((f"{path}{step_to(key.text)}", moved))
        return items

    def _wait(self, start: int) -> None:
        """Begin the next record where what it is in begins, such as at its key."""
        if self._begin < 0:
            self._begin = start

    def _row(self, path: str, node: _Node) -> None:
        last_end = self._rows[-1][1] if self._rows else 0
        start = node.start
        if self._begin >= 0:
            start = min(start, self._begin)
        self._begin = -1
        start = max(start, last_end)
        reach = max(last_end, start - _REACH)
        marks = _MARKS_BEFORE.search(self._source, reach, start)
        if marks is not None:
            start = marks.start()
        marks = _MARKS_AFTER.match(self._source, node.end, node.end + _REACH)
        end = marks.end() if marks is not None else node.end
        self._places.append((start, path))
        longest = LONGEST_FIELD if node.kind == "scalar" else LONGEST_UNIT
        if start < end <= start + longest:
            self._rows.append((start, end))
            dashes = _DASHES.match(self._source, start, end)
            if dashes is not None:
                self._marks.append(dashes.span())

    def text(self) -> TextFile:
        """The text, with the escapes replaced."""
        parts: list[str] = []
        source_ends: list[int] = []
        shifts: list[int] = []
        position = shift = 0
        for start, end, new_text in self._replaced:
            parts += [self._source[position:start], new_text]
            position = end
            shift += len(new_text) - (end - start)
            source_ends.append(end)
            shifts.append(shift)
        parts.append(self._source[position:])

        def moved(offset: int) -> int:
            number = bisect_right(source_ends, offset)
            return offset + (shifts[number - 1] if number else 0)

        blocks: list[Block] = []
        for start, end in self._rows:
            blocks.append(Block(moved(start), moved(end), "row"))
        for start, end in self._marks:
            blocks.append(Block(moved(start), moved(end), "markup"))
        places = [PlaceStart(moved(start), name) for start, name in self._places]
        return TextFile(
            "",
            "".join(parts),
            tuple(in_order(blocks)),
            notes=self._notes(),
            places=tuple(places),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self._base64:
            return ()
        return (f"values in base64 are left out ({self._base64:,})",)


def _goes_on(last: _Node, value: _Node) -> bool:
    """Whether two values of an object are in one unit."""
    if last.kind != "scalar" or value.kind != "scalar":
        return False
    return value.end - last.start <= LONGEST_FIELD


def _is_record(node: _Node) -> bool:
    """Whether an object is one unit: short, without lists of objects."""
    if node.end - node.start > LONGEST_UNIT:
        return False
    values: Sequence[_Node] = node.children[1::2]
    if all(value.kind == "fields" for value in values):
        return False
    todo = list(values)
    while todo:
        value = todo.pop()
        if value.kind == "scalar":
            continue
        is_flat = all(child.kind == "scalar" for child in value.children)
        if value.kind == "list" and not (is_flat or value.flow):
            return False
        todo += value.children[1::2] if value.kind == "fields" else []
    return True
