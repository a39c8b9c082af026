"""The inputs of a batch: which rows of which files make each part, and those rows as questions on documents."""

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path, PurePath
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import KINDS, read, regular_files
from spscanner_rag.files.writing import parse_object
from spscanner_rag.text.extras import needed

TABLES = (".parquet", ".jsonl", ".ndjson")
CHUNK_BYTES = 16 * 2**20
"""A chunk of long rows ends earlier, so that memory does not grow with the length of documents."""

_ROWS_AT_A_TIME = 256


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


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that are scanned together into one part."""

    number: int  # from 0; the name of the part
    paths: tuple[str, ...]  # one file of rows, or several documents
    start: int = 0  # first row of the file
    stop: int = 0  # the row after the last one; 0 for documents
    name: str = ""  # of that file in ids: its last part, or the path where two inputs end alike


State = tuple[int, ...]
"""What changes whenever a file does."""


class InputChangedError(ValueError):
    """An input changed after the run had begun; what was read of it is not written."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All chunks of the inputs, and the SHA-256 of each input in their order."""

    chunks: tuple[Chunk, ...]
    digests: tuple[str, ...]
    states: Mapping[str, State]  # of each input when its digest was computed
    notes: tuple[str, ...] = ()  # lines for the user

    def check_unchanged(self, chunk: Chunk) -> None:
        """Raise ``InputChangedError`` if a file of a chunk is not the one that the plan was made of."""
        for path in chunk.paths:
            if _state(path) != self.states[path]:
                raise InputChangedError(
                    f"{path}: changed while it was read; expected the same content during a run: give the "
                    "finished file, and another --out"
                )


def plan_of(inputs: Sequence[str], columns: Columns, rows_per_part: int, has_queries: bool) -> Plan:
    """Divide the rows of the inputs into chunks, always the same ones; ``ValueError`` for unusable inputs."""
    tables, documents, notes = _found(inputs)
    if documents and not has_queries:
        raise ValueError(
            f"{documents[0]}: got a document without a question; expected --query or --queries for documents"
        )
    files = (*tables, *documents)
    states = {path: _state(path) for path in files}
    wanted = (columns.text,) if has_queries else (columns.text, columns.query)
    names = [PurePath(path).name for path in tables]
    chunks: list[Chunk] = []
    for path, name in zip(tables, names, strict=True):
        own = path if names.count(name) > 1 else name
        for start, stop in _stretches(path, wanted, rows_per_part):
            chunks.append(Chunk(len(chunks), (path,), start, stop, own))
    for first in range(0, len(documents), rows_per_part):
        chunks.append(Chunk(len(chunks), tuple(documents[first : first + rows_per_part])))
    if not chunks:
        raise ValueError(f"{', '.join(inputs)}: got no row; expected at least one: check the files")
    plan = Plan(tuple(chunks), tuple(map(_digest, files)), states, tuple(notes))
    for chunk in chunks:
        plan.check_unchanged(chunk)
    return plan


class RowReader:
    """Reads chunks of one plan in their order; without ``queries`` each row has its own question."""

    def __init__(self, columns: Columns, queries: Sequence[Query]) -> None:
        self._columns, self._queries = columns, queries
        self._table: Iterator[Any] = iter(())  # rows of the file that is being read
        self._path, self._at = "", 0  # this file, and the number of its next row
        self._ids: set[int] = set()  # hashes of them
        self.repeated: list[str] = []  # ids that an earlier row has

    def rows(self, chunk: Chunk) -> list[Row]:
        """The rows of a chunk; one that cannot be read has its error instead of a document."""
        if not chunk.stop:
            return [row for path in chunk.paths for row in self._document(path)]
        rows = enumerate(self._raw(chunk), chunk.start + 1)
        return [found for number, row in rows for found in self._rows_of(row, f"{chunk.name}:{number}")]

    def _document(self, path: str) -> list[Row]:
        self._count(path)
        try:
            return self._asked(path, read(path))
        except (ValueError, ImportError, RecursionError) as error:
            return self._asked(path, error=str(error))

    def _rows_of(self, row: Any, place: str) -> list[Row]:  # noqa: ANN401 - a line, or pyarrow's batch of one row
        identifier, query = place, ""
        try:
            values = _values(row)
            given = values.get(self._columns.id)
            if given is not None:
                identifier = given if isinstance(given, str) else json.dumps(given, default=str)
            self._count(identifier)
            text = _string(values, self._columns.text)
            if not self._queries:
                query = _string(values, self._columns.query)
        except ValueError as error:
            return self._asked(identifier, error=str(error))
        return self._asked(identifier, text, query)

    def _count(self, identifier: str) -> None:
        if hash(identifier) in self._ids:
            self.repeated.append(identifier)
        self._ids.add(hash(identifier))

    def _asked(
        self, identifier: str, document: str | TextFile = "", query: str = "", error: str | None = None
    ) -> list[Row]:
        if not self._queries:
            return [Row(identifier, None, query, document, error)]
        return [Row(identifier, each.id, each.text, document, error) for each in self._queries]

    def _raw(self, chunk: Chunk) -> Iterator[Any]:
        (path,) = chunk.paths
        if self._path != path or self._at > chunk.start:  # another file, or the same one named again
            self._table = _parquet_rows(path, self._columns) if _is_parquet(path) else _lines(path)
            self._at = 0
        self._path = ""  # where reading fails, the next chunk begins anew
        yield from islice(self._table, chunk.start - self._at, chunk.stop - self._at)
        self._path, self._at = path, chunk.stop


def _found(inputs: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Tables and documents that the inputs name, and notes. A folder with tables is read for these alone.

    Hidden files and those that begin with an underscore, or lie in a folder that does, are left out.
    """
    tables: list[str] = []
    documents: list[str] = []
    notes: list[str] = []
    for path in inputs:
        if not Path(path).is_dir():
            (tables if path.lower().endswith(TABLES) else documents).append(path)
            continue
        for endings, kind in ((TABLES, tables), (tuple(KINDS), documents)):
            inside, _, told = regular_files(path, endings)
            if own := sorted(file for file in inside if f"{os.sep}_" not in file[len(path) - 1 :]):
                kind += own
                notes += told
                break
        else:
            raise ValueError(
                f"{path}: got a folder of which nothing can be read; expected files that end in "
                f"{', '.join((*TABLES, *KINDS))}"
            )
    return tables, documents, notes


def _state(path: str) -> State:
    try:
        status = os.stat(path)
    except OSError:
        return ()  # whoever opens it says what is wrong
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _opened(path: str) -> io.BufferedReader:
    """Open a file to read from any place in it; ``ValueError`` names what cannot be read."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(
                f"{path}: got no regular file; expected one that can be read twice: save it first"
            )
        return open(path, "rb")
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read ({error.strerror}); expected an existing file: check the path and the "
            "permissions"
        ) from None


def _digest(path: str) -> str:
    if _state(path)[2:3] == (0,):  # files of the system have no size either, and some have no end
        return hashlib.sha256().hexdigest()
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _stretches(path: str, columns: Iterable[str], most: int) -> Iterator[tuple[int, int]]:
    """The first row of each chunk of a table, and the row after its last."""
    lengths: Iterable[int]
    if _is_parquet(path):
        rows, row_bytes = _parquet_size(path, columns)
        lengths, most = repeat(0, rows), max(1, min(most, int(CHUNK_BYTES / max(1.0, row_bytes))))
    else:
        lengths = map(len, _lines(path))  # that lines have the columns is checked when each is read
    start = size = row = 0
    for row, length in enumerate(lengths, 1):
        size += length
        if row - start >= most or size >= CHUNK_BYTES:
            yield start, row
            start, size = row, 0
    if row > start:
        yield start, row


def _parquet_size(path: str, columns: Iterable[str]) -> tuple[int, float]:
    """The number of rows of a file, and their mean length in bytes; ``ValueError`` if it lacks a column."""
    owner = f"{path}: reading Parquet"
    pa, pq = needed("pyarrow", owner, "parquet"), needed("pyarrow.parquet", owner, "parquet")
    with _opened(path) as file:
        try:
            table = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: got no Parquet file ({str(error)[:200]}); check that it is whole"
            ) from None
        names, found = table.schema_arrow.names, table.metadata
        if missing := [column for column in columns if column not in names]:
            raise ValueError(
                f"{path}: got the columns {', '.join(names)}; expected a column of strings {missing[0]!r}: see "
                "--text-column and --query-column"
            )
        groups = (found.row_group(number).total_byte_size for number in range(found.num_row_groups))
        return found.num_rows, sum(groups) / max(1, found.num_rows)


def _parquet_rows(path: str, columns: Columns) -> Iterator[Any]:
    """All rows of a file, each as a record batch of pyarrow; a row group is decoded once."""
    import pyarrow.parquet as pq

    with _opened(path) as file:
        table = pq.ParquetFile(file)
        wanted = {columns.id, columns.query, columns.text}
        names = [name for name in table.schema_arrow.names if name in wanted]
        for batch in table.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=names, use_threads=False):
            for number in range(batch.num_rows):
                yield batch.slice(number, 1)


def _lines(path: str) -> Iterator[bytes]:
    with _opened(path) as file:
        yield from file


def _values(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a line, or pyarrow's batch of one row
    """The values of a row; ``ValueError`` for what is no JSON object, and for strings that are not UTF-8."""
    if not isinstance(row, bytes):
        return dict(row.to_pylist()[0])
    try:
        return parse_object(row)
    except ValueError as error:
        raise ValueError(f"got no JSON ({str(error)[:200]}); expected an object on one line") from None


def _string(values: Mapping[str, object], column: str) -> str:
    """The string in a column of a record; ``ValueError`` if there is none."""
    if column not in values:
        raise ValueError(f"{column}: missing; expected a string")
    value = values[column]
    if not isinstance(value, str):
        raise ValueError(f"{column}: got {type(value).__name__}; expected a string")
    return value
