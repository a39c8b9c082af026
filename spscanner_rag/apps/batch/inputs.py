"""The inputs of a batch: which rows of which files make each part, and those rows as questions on documents."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Literal

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.json_files import parse_object
from spscanner_rag.files.reading import KINDS, read, regular_files
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
    kind: Literal["parquet", "jsonl", "documents"]
    paths: tuple[str, ...]  # one file of rows, or several documents
    start: int = 0  # first row of the file
    stop: int = 0  # the row after the last one
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
    _refuse_twice([*tables, *documents])
    states = {path: _state(path) for path in (*tables, *documents)}
    if documents and not has_queries:
        raise ValueError(
            f"{documents[0]}: got a document without a question; expected --query or --queries for documents"
        )
    chunks: list[Chunk] = []
    digests = []
    for path in tables:
        if path.lower().endswith(".parquet"):
            needed = (columns.text,) if has_queries else (columns.text, columns.query)
            sha256, found = _parquet_chunks(path, needed, rows_per_part)
        else:
            sha256, found = _json_chunks(path, rows_per_part)
        digests.append(sha256)
        name = PurePath(path).name
        alike = sum(PurePath(other).name == name for other in tables) > 1
        chunks += [replace(chunk, name=path if alike else name) for chunk in found]
    for first in range(0, len(documents), rows_per_part):
        chunks.append(Chunk(0, "documents", tuple(documents[first : first + rows_per_part])))
    digests += map(_digest, documents)
    if not chunks:
        raise ValueError(f"{', '.join(inputs)}: got no row; expected at least one: check the files")
    numbered = tuple(replace(chunk, number=number) for number, chunk in enumerate(chunks))
    plan = Plan(numbered, tuple(digests), states, tuple(notes))
    for chunk in numbered:
        plan.check_unchanged(chunk)
    return plan


class RowReader:
    """Reads chunks of one plan, in order each file once; without ``queries`` each row has its own question."""

    def __init__(self, columns: Columns, queries: Sequence[Query]) -> None:
        self._columns, self._queries = columns, queries
        self._table: Iterator[Any] = iter(())  # rows of the file that is being read
        self._path, self._at = "", 0  # this file, and the number of its next row
        self._ids: set[int] = set()  # hashes of them
        self.repeated: list[str] = []  # ids that an earlier row has

    def rows(self, chunk: Chunk) -> list[Row]:
        """The rows of a chunk; one that cannot be read has its error instead of a document."""
        if chunk.kind == "documents":
            return [row for path in chunk.paths for row in self._document(self._counted(path))]
        (path,) = chunk.paths
        record: Callable[[Any], dict[str, Any]] = _json_record if chunk.kind == "jsonl" else _parquet_record
        found: list[Row] = []
        for number, row in enumerate(self._kept(path, chunk), chunk.start + 1):
            place = f"{chunk.name}:{number}"
            try:
                found += self._rows_of(record(row), place)
            except ValueError as error:
                found += self._asked(place, error=str(error))
        return found

    def _counted(self, identifier: str) -> str:
        if hash(identifier) in self._ids:
            self.repeated.append(identifier)
        self._ids.add(hash(identifier))
        return identifier

    def _asked(self, identifier: str, document: str | TextFile = "", error: str | None = None) -> list[Row]:
        if error is not None and not self._queries:
            return [Row(identifier, error=error)]
        return [Row(identifier, query.id, query.text, document, error) for query in self._queries]

    def _document(self, path: str) -> list[Row]:
        try:
            return self._asked(path, read(path))
        except (ValueError, ImportError, RecursionError) as error:
            return self._asked(path, error=str(error))

    def _rows_of(self, values: Mapping[str, object], place: str) -> list[Row]:
        identifier = values.get(self._columns.id)
        if identifier is None:
            identifier = place
        elif not isinstance(identifier, str):
            identifier = json.dumps(identifier, default=str)
        self._counted(identifier)
        try:
            text = _string(values, self._columns.text)
            if self._queries:
                return self._asked(identifier, text)
            return [Row(identifier, None, _string(values, self._columns.query), text)]
        except ValueError as error:
            return self._asked(identifier, error=str(error))

    def _kept(self, path: str, chunk: Chunk) -> Iterator[Any]:
        if self._path != path or self._at > chunk.start:
            self._table = _json_lines(path) if chunk.kind == "jsonl" else _parquet_rows(path, self._columns)
            self._at = 0
        self._path = ""  # where reading fails, the next chunk begins anew
        yield from islice(self._table, chunk.start - self._at, chunk.stop - self._at)
        self._path, self._at = path, chunk.stop


def _found(inputs: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Tables and documents that the inputs name, and notes. A folder with tables is read for these alone."""
    tables: list[str] = []
    documents: list[str] = []
    notes: list[str] = []
    for path in inputs:
        if Path(path).is_dir():
            inside, told = _files_in(path, TABLES)
            tables += inside
            if not inside:
                inside, told = _files_in(path, tuple(KINDS))
                documents += inside
            if not inside:
                raise ValueError(
                    f"{path}: got a folder of which nothing can be read; expected files that end in "
                    f"{', '.join((*TABLES, *KINDS))}"
                )
            notes += told
        elif path.lower().endswith(TABLES):
            tables.append(path)
        else:
            documents.append(path)
    return tables, documents, notes


def _files_in(folder: str, endings: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Files below a folder with these endings, sorted, not .hidden or _hidden; and notes."""
    found, _, notes = regular_files(folder, endings)
    places = [(path, PurePath(path).relative_to(folder).parts) for path in found]
    return sorted(path for path, parts in places if not any(part.startswith("_") for part in parts)), notes


def _refuse_twice(paths: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for path in paths:
        place = os.path.abspath(path)
        if place in seen:
            raise ValueError(
                f"{path}: got the same file as {seen[place]}; expected each input once: its rows would be scanned "
                "and named twice"
            )
        seen[place] = path


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


def _json_chunks(path: str, rows_per_part: int) -> tuple[str, list[Chunk]]:
    """Divide lines; that they have the columns is checked when each is read."""
    hashed = hashlib.sha256()
    chunks = []
    start = size = row = 0
    for row, line in enumerate(_json_lines(path), 1):
        hashed.update(line)
        size += len(line)
        if row - start >= rows_per_part or size >= CHUNK_BYTES:
            chunks.append(Chunk(0, "jsonl", (path,), start, row))
            start, size = row, 0
    if row > start:
        chunks.append(Chunk(0, "jsonl", (path,), start, row))
    return hashed.hexdigest(), chunks


def _parquet_chunks(path: str, columns: Iterable[str], rows_per_part: int) -> tuple[str, list[Chunk]]:
    owner = f"{path}: reading Parquet"
    pa, pq = needed("pyarrow", owner, "parquet"), needed("pyarrow.parquet", owner, "parquet")
    sha256 = _digest(path)
    with _opened(path) as file:
        try:
            table = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: got no Parquet file ({str(error)[:200]}); check that it is whole"
            ) from None
        for column in columns:
            _check_column(path, column, table.schema_arrow)
        rows = table.metadata.num_rows
        groups = (table.metadata.row_group(number) for number in range(table.metadata.num_row_groups))
        row_bytes = sum(group.total_byte_size for group in groups) / max(1, rows)
    step = max(1, min(rows_per_part, int(CHUNK_BYTES / max(1.0, row_bytes))))
    return sha256, [
        Chunk(0, "parquet", (path,), start, min(rows, start + step)) for start in range(0, rows, step)
    ]


def _check_column(path: str, column: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow's
    place = schema.get_field_index(column)
    kind = None if place < 0 else str(schema.field(place).type)
    if kind not in ("string", "large_string", "string_view"):
        got = f"the columns {', '.join(schema.names)}" if kind is None else f"{column} of type {kind}"
        raise ValueError(
            f"{PurePath(path).name}: got {got}; expected a column of strings {column!r}: see --text-column and "
            "--query-column"
        )


def _parquet_rows(path: str, columns: Columns) -> Iterator[tuple[Any, int]]:
    """All rows of a file, each as a record batch of pyarrow and its row there; a row group is decoded once."""
    import pyarrow.parquet as pq

    with _opened(path) as file:
        table = pq.ParquetFile(file)
        wanted = {columns.id, columns.query, columns.text}
        names = [name for name in table.schema_arrow.names if name in wanted]
        for batch in table.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=names, use_threads=False):
            for number in range(batch.num_rows):
                yield batch, number


def _parquet_record(row: tuple[Any, int]) -> dict[str, Any]:
    batch, number = row
    try:
        return {name: batch.column(name)[number].as_py() for name in batch.schema.names}
    except UnicodeDecodeError as error:
        raise ValueError(
            f"got a string that is not UTF-8 ({error.reason} at byte {error.start:,}); expected UTF-8"
        ) from None


def _json_lines(path: str) -> Iterator[bytes]:
    with _opened(path) as file:
        yield from file


def _json_record(line: bytes) -> dict[str, Any]:
    try:
        return parse_object(line)
    except ValueError as error:  # also for what is not UTF-8
        raise ValueError(f"got no JSON ({str(error)[:200]}); expected an object on one line") from None


def _string(values: Mapping[str, object], column: str) -> str:
    """The string in a column of a record; ``ValueError`` if there is none."""
    if column not in values:
        raise ValueError(f"{column}: missing; expected a string")
    value = values[column]
    if not isinstance(value, str):
        raise ValueError(f"{column}: got {type(value).__name__}; expected a string")
    return value
