"""Reads the rows of chunks: each a question about a document."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from spscanner_rag.apps.batch.plan import Chunk
from spscanner_rag.apps.batch.stores import is_address, open_input
from spscanner_rag.apps.batch.tables import Columns, row_values, string_in, table_rows
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import most_bytes_of, read, read_bytes


class Query(NamedTuple):
    """A question for all documents."""

    id: str | None
    text: str


class Row(NamedTuple):
    """One question about one document."""

    id: str
    query_id: str | None = None
    query: str = ""
    document: str | TextFile = ""
    error: str | None = None  # why it cannot be scanned


class RowReader:
    """Reads chunks in order, so that a file is opened once.

    Parameters
    ----------
    columns : Columns
    queries : sequence of Query
        Asked of every document. Without them, each row has its own question.
    """

    def __init__(self, columns: Columns, queries: Sequence[Query] = ()) -> None:
        self.columns = columns
        self.queries = queries
        self._table: Iterator[Any] = iter(())  # rows of the open file
        self._path = ""  # the open file
        self._next_row = 0  # its number in the file

    def rows(self, chunk: Chunk) -> list[Row]:
        """Return the rows of a chunk.

        A row that cannot be read has an error instead of a document.
        """
        rows: list[Row] = []
        if not chunk.stop:
            for path in chunk.paths:
                rows += self._document_rows(path)
            return rows
        for number, row in enumerate(self._rows_of_table(chunk), chunk.start + 1):
            rows += self._table_row(row, f"{chunk.name}:{number}")
        return rows

    def _document_rows(self, path: str) -> list[Row]:
        try:
            return self._with_queries(path, _read_document(path))
        except (ValueError, ImportError, RecursionError) as error:
            return self._with_queries(path, error=str(error))

    def _table_row(self, row: Any, place: str) -> list[Row]:  # noqa: ANN401
        identifier = place
        query = ""
        try:
            values = row_values(row)
            identifier = _identifier_in(values, self.columns.id, place)
            text = string_in(values, self.columns.text)
            if not self.queries:
                query = string_in(values, self.columns.query)
        except ValueError as error:
            return self._with_queries(identifier, error=str(error))
        return self._with_queries(identifier, text, query)

    def _with_queries(
        self,
        identifier: str,
        document: str | TextFile = "",
        query: str = "",
        error: str | None = None,
    ) -> list[Row]:
        rows: list[Row] = []
        for question in self.queries or [Query(None, query)]:
            rows.append(Row(identifier, question.id, question.text, document, error))
        return rows

    def _rows_of_table(self, chunk: Chunk) -> Iterator[Any]:
        (path,) = chunk.paths
        # another file, or the same file named again
        if self._path != path or self._next_row > chunk.start:
            self._table = table_rows(path, self.columns)
            self._next_row = 0
        self._path = ""  # if reading fails, the next chunk opens the file again
        first = chunk.start - self._next_row
        yield from islice(self._table, first, chunk.stop - self._next_row)
        self._path = path
        self._next_row = chunk.stop


def _read_document(path: str) -> TextFile:
    if not is_address(path):
        return read(path)
    with open_input(path) as file:
        return read_bytes(path, file.read(most_bytes_of(path) + 1))


def _identifier_in(values: dict[str, Any], column: str, place: str) -> str:
    value = values.get(column)
    if value is None:
        return place
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str)
