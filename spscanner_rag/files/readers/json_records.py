"""Reads JSON and JSON Lines: each record is a unit, and its path is its place.

Keys and values are shown without quotation marks, braces and escapes. Numbers stay as
they are written, and repeated keys are all read.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.base64_values import is_base64
from spscanner_rag.files.readers.html_values import without_html
from spscanner_rag.files.readers.text_builder import (
    BETWEEN_CELLS,
    TextBuilder,
    decoded,
)
from spscanner_rag.text.block_segmentation import LONGEST_UNIT

LONGEST_FIELD = 300
"""Characters: a longer value is a text, which is cut into sentences."""

_SENTENCE_ENDS = (".", "!", "?", "\u3002")

MOST_DEPTH = 500
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]{0,60}")
_BASE64 = "(base64)"
_CONSTANTS = {True: "true", False: "false", None: "null"}

_Scalar = str
_Tree = object  # str, _Fields or list


class _Fields(NamedTuple):
    """The keys and values of an object, in order."""

    pairs: list[tuple[str, _Tree]]


class _Waiting(NamedTuple):
    """A value that is still to be added."""

    path: str
    value: _Tree
    label: str  # its key, shown before its first record


def read_json(data: bytes) -> TextFile:
    """Read a JSON file, or read it as plain text if it is no valid JSON.

    ``ValueError`` if it is not UTF-8 or UTF-16, or nested too deep.
    """
    text = decoded(data)
    try:
        tree = _parsed(text)
    except json.JSONDecodeError as error:
        note = f"it is no valid JSON ({error}), and read as plain text"
        return TextFile("", text, notes=(note,))
    records = _Records()
    records.add(tree, "$")
    return records.text()


def read_json_lines(data: bytes) -> TextFile:
    """Read a file with a JSON value in each line.

    A line that is no JSON is read as text, with a note.
    """
    records = _Records()
    invalid: list[int] = []
    for number, line in enumerate(decoded(data).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tree = _parsed(line)
        except json.JSONDecodeError:
            invalid.append(number)
            tree = line.strip()
        records.add(tree, "$", line=number)
    if invalid:
        records.built.note(
            f"lines that are no valid JSON are read as text ({len(invalid):,}, the"
            f" first is line {invalid[0]:,})"
        )
    return records.text()


def _parsed(text: str) -> _Tree:
    try:
        return json.loads(
            text,
            object_pairs_hook=_Fields,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
        )
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> ValueError:
    return ValueError(
        f"got values nested more than {MOST_DEPTH} deep; expected fewer: split the file"
    )


class _Records:
    """Builds a text of records, which are walked without recursion."""

    def __init__(self) -> None:
        self.built = TextBuilder()
        self._line = ""  # before the paths of a line
        self._base64 = 0
        self._labels: list[str] = []

    def text(self) -> TextFile:
        """The text of all records."""
        if self._base64:
            self.built.note(f"values in base64 are left out ({self._base64:,})")
        return self.built.converted()

    def add(self, tree: _Tree, path: str, *, line: int = 0) -> None:
        """Add a value and all that it contains."""
        self._line = f"line {line}" if line else ""
        todo = [_Waiting(path, tree, "")]
        while todo:
            waiting = todo.pop()
            if waiting.path.count(".") + waiting.path.count("[") > MOST_DEPTH:
                raise _too_deep()
            if waiting.label:
                self._labels.append(waiting.label)
            todo += reversed(self._add_one(waiting.path, waiting.value))

    def _add_one(self, path: str, tree: _Tree) -> list[_Waiting]:
        """Add a record, or what an object or list has that is none itself."""
        if isinstance(tree, _Fields):
            return self._add_fields(path, tree)
        if isinstance(tree, list):
            return self._add_list(path, tree)
        self._add_value(path, "", self._shown(tree))
        return []

    def _add_fields(self, path: str, tree: _Fields) -> list[_Waiting]:
        record = self._record(tree)
        if record is not None:
            self._add_row(path, record)
            return []
        short: list[str] = []
        texts: list[tuple[str, str]] = []
        further: list[_Waiting] = []
        for key, value in tree.pairs:
            if isinstance(value, _Fields | list) and _has_content(value):
                further.append(_Waiting(f"{path}{step_to(key)}", value, key))
                continue
            shown = self._shown(value)
            if len(shown) > LONGEST_FIELD:
                texts.append((key, shown))
            else:
                short.append(f"{key}: {shown}")
        if short:
            self._add_row(path, BETWEEN_CELLS.join(short))
        for key, shown in texts:
            self._add_value(f"{path}{step_to(key)}", key, shown)
        return further

    def _add_list(self, path: str, values: list[_Tree]) -> list[_Waiting]:
        if not any(_has_content(value) for value in values):
            texts = [self._shown(value) for value in values]
            joined = ", ".join(texts) or "[]"
            if len(joined) <= LONGEST_FIELD and not are_sentences(texts):
                self._add_row(path, joined)
                return []
        waiting: list[_Waiting] = []
        for number, value in enumerate(values):
            waiting.append(_Waiting(f"{path}[{number}]", value, ""))
        return waiting

    def _record(self, tree: _Fields) -> str | None:
        """The fields of an object on one line, or None if it is more than a record.

        An object that contains lists of objects, or only objects, is more.
        """
        if all(isinstance(value, _Fields) for _, value in tree.pairs):
            return None
        fields: list[str] = []
        length = 0
        todo: list[tuple[str, _Tree]] = list(reversed(tree.pairs))
        while todo:
            key, value = todo.pop()
            if isinstance(value, _Fields) and value.pairs:
                for inner_key, inner in reversed(value.pairs):
                    todo.append((f"{key}.{inner_key}", inner))
                continue
            if isinstance(value, list) and any(map(_has_content, value)):
                return None
            shown = self._shown(value)
            length += len(key) + len(shown)
            if len(shown) > LONGEST_FIELD or length > LONGEST_UNIT:
                return None
            fields.append(f"{key}: {shown}")
        return BETWEEN_CELLS.join(fields)

    def _shown(self, value: _Tree) -> str:
        """The text of a value that contains no objects."""
        if isinstance(value, list):
            return ", ".join(map(self._shown, value)) or "[]"
        if isinstance(value, _Fields):
            return "{}"
        if isinstance(value, str):
            if not is_base64(value):
                return without_html(value).strip()
            self._base64 += 1
            return _BASE64
        return _CONSTANTS[value]  # type: ignore[index]

    def _add_row(self, path: str, text: str) -> None:
        self._begin(path)
        labels = [*self._labels, " ".join(text.split())]
        self._labels = []
        self.built.row(BETWEEN_CELLS.join(filter(None, labels)))

    def _add_value(self, path: str, key: str, text: str) -> None:
        if len(text) <= LONGEST_FIELD:
            self._add_row(path, text)
            return
        self._begin(path)
        labels = [*self._labels, key]
        self._labels = []
        label = BETWEEN_CELLS.join(filter(None, labels))
        self.built.paragraph(f"{label}: {text}" if label else text)

    def _begin(self, path: str) -> None:
        if not self._line:
            self.built.place(path)
        else:
            self.built.place(f"{self._line}, {path}" if path != "$" else self._line)


def _has_content(value: _Tree) -> bool:
    """Whether a value contains others."""
    if isinstance(value, _Fields):
        return bool(value.pairs)
    return isinstance(value, list) and bool(value)


def are_sentences(values: Sequence[str]) -> bool:
    """Whether most values of a list are sentences, each of which is a record.

    Examples
    --------
    >>> are_sentences(["It rained.", "Nobody came."]), are_sentences(["a.", "b."])
    (True, False)
    """
    n_sentences = 0
    for value in values:
        n_sentences += value.rstrip().endswith(_SENTENCE_ENDS) and " " in value.strip()
    return len(values) > 1 and 2 * n_sentences > len(values)


def step_to(key: str) -> str:
    """A step of a path (JSONPath) to the value of a key.

    Examples
    --------
    >>> step_to("name"), step_to("a b")
    ('.name', "['a b']")
    """
    if _IDENTIFIER.fullmatch(key):
        return f".{key}"
    return f"['{key[:60]}']"
