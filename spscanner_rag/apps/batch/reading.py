"""Reads the rows of chunks; a reader that gets chunks in order reads each file once."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from spscanner_rag.apps.batch.plan import Chunk
from spscanner_rag.apps.batch.rows import Columns, Query, Row, on_document, record_of, rows_of
from spscanner_rag.apps.batch.stores import opened
from spscanner_rag.files.reading import read

_ROWS_AT_A_TIME = 256


class RowReader:
    """Reads chunks of one plan.

    Parameters
    ----------
    columns
    queries
        Asked of each document; without them, each row has its own question.
    """

    def __init__(self, columns: Columns, queries: Sequence[Query]) -> None:
        self._columns, self._queries = columns, queries
        self._table: _ParquetRows | None = None

    def rows(self, chunk: Chunk) -> list[Row]:
        """The rows of a chunk; one that cannot be read has its error instead of a document."""
        if chunk.kind == "documents":
            return [row for path in chunk.paths for row in self._document(path)]
        (path,) = chunk.paths
        found: list[Row] = []
        records = self._json_lines(path, chunk) if chunk.kind == "jsonl" else self._parquet(path, chunk)
        for number, (values, wrong) in enumerate(records, chunk.start + 1):
            place = f"{os.path.basename(path)}:{number}"
            if wrong is None:
                found += rows_of(values, place, self._columns, self._queries)
            elif self._queries:
                found += on_document(place, self._queries, "", wrong)
            else:
                found.append(Row(place, error=wrong))
        return found

    def close(self) -> None:
        """Close the file that is being read, if there is one."""
        if self._table is not None:
            self._table.close()
            self._table = None

    def _document(self, path: str) -> list[Row]:
        try:
            return on_document(path, self._queries, read(path))
        except (ValueError, ImportError, RecursionError) as error:
            return on_document(path, self._queries, "", str(error))

    def _json_lines(self, path: str, chunk: Chunk) -> Iterator[tuple[dict[str, Any], str | None]]:
        with opened(path) as file:
            file.seek(chunk.offset)
            for line in islice(file, chunk.stop - chunk.start):
                yield record_of(line)

    def _parquet(self, path: str, chunk: Chunk) -> Iterator[tuple[dict[str, Any], str | None]]:
        if self._table is None or self._table.path != path or self._table.at > chunk.start:
            self.close()
            self._table = _ParquetRows(path, self._columns)
        yield from self._table.rows(chunk.start, chunk.stop)
        if self._table.at == self._table.count:
            self.close()


class _ParquetRows:
    """Rows of a file from the first to the last.

    One group of rows is often as large as the file, so a reader that started again for each chunk would decode the
    file once for each.
    """

    def __init__(self, path: str, columns: Columns) -> None:
        import pyarrow.parquet as pq

        self.path, self.at = path, 0
        self._file = opened(path)
        table = pq.ParquetFile(self._file)
        self.count = table.metadata.num_rows
        wanted = {columns.id, columns.query, columns.text}
        names = [name for name in table.schema_arrow.names if name in wanted]
        self._batches = table.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=names, use_threads=False)
        self._rest: Any = None

    def close(self) -> None:
        self._file.close()

    def rows(self, start: int, stop: int) -> Iterator[tuple[dict[str, Any], str | None]]:
        while self.at < stop:
            if self._rest is None or not self._rest.num_rows:
                self._rest = next(self._batches)
            if self.at < start:
                taken = min(self._rest.num_rows, start - self.at)
            else:
                taken = min(self._rest.num_rows, stop - self.at)
                yield from map(_values, _dictionaries(self._rest.slice(0, taken)))
            self._rest = self._rest.slice(taken)
            self.at += taken


def _dictionaries(batch: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - pyarrow's
    for number in range(batch.num_rows):
        yield {name: column[number] for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _values(cells: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    try:
        return {name: cell.as_py() for name, cell in cells.items()}, None
    except UnicodeDecodeError as error:
        return {}, f"got a string that is not UTF-8 ({error.reason} at byte {error.start:,}); expected UTF-8"
