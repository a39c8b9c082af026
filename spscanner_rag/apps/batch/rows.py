"""A row of a batch: a question and a document, or the reason why there is none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.strict_json import parse_json


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns, or keys of JSON objects, that rows are read from."""

    id: str = "id"
    query: str = "query"
    text: str = "text"


@dataclass(frozen=True, slots=True)
class Query:
    """A question for all documents."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One question on one document; ``error`` says why it cannot be scanned."""

    id: str
    query_id: str | None = None
    query: str = ""
    document: str | TextFile = ""
    error: str | None = None


def rows_of(
    values: Mapping[str, object], place: str, columns: Columns, queries: Sequence[Query]
) -> list[Row]:
    """The rows of a record: one, or one for each of the ``queries`` where these are given.

    A record without an id is named by its place.
    """
    given = values.get(columns.id)
    identifier = (
        place if given is None else given if isinstance(given, str) else json.dumps(given, default=str)
    )
    wrong = _wrong(columns.text, values)
    if queries:
        text = values.get(columns.text)
        return on_document(identifier, queries, text if isinstance(text, str) else "", wrong)
    wrong = wrong or _wrong(columns.query, values)
    if wrong:
        return [Row(identifier, error=wrong)]
    return [Row(identifier, None, str(values[columns.query]), str(values[columns.text]))]


def on_document(
    identifier: str, queries: Sequence[Query], document: str | TextFile, error: str | None = None
) -> list[Row]:
    """A row for each question on a document."""
    return [Row(identifier, query.id, query.text, document, error) for query in queries]


def record_of(line: bytes) -> tuple[dict[str, Any], str | None]:
    """The object of a line of JSON, and the reason if it holds none."""
    try:
        values = parse_json(line)
    except (ValueError, RecursionError) as error:  # ValueError also for what is not UTF-8
        return {}, f"got no JSON ({str(error)[:200]}); expected an object on one line"
    if not isinstance(values, dict):
        return {}, f"got a JSON {type(values).__name__}; expected an object on one line"
    return values, None


def _wrong(column: str, values: Mapping[str, object]) -> str | None:
    if column not in values:
        return f"{column}: missing; expected a string"
    value = values[column]
    return None if isinstance(value, str) else f"{column}: got {type(value).__name__}; expected a string"
