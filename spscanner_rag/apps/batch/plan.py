"""The plan of a batch: which rows of which inputs make each part, and the digests of the inputs."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, Literal

from spscanner_rag.apps.batch.rows import Columns
from spscanner_rag.apps.batch.stores import digest, files_in, is_address, opened
from spscanner_rag.files.kinds import KINDS

TABLES = (".parquet", ".jsonl", ".ndjson")
CHUNK_BYTES = 16 * 2**20
"""A chunk of long rows ends earlier, so that memory does not grow with the length of documents."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows that are scanned together into one part.

    Attributes
    ----------
    number
        From 0; the name of the part.
    kind, paths
        One file of rows, or several documents, each a file of its own.
    start, stop
        Rows of the file, the last one excluded.
    offset
        Where the first row of a JSONL file begins, in bytes.
    """

    number: int
    kind: Literal["parquet", "jsonl", "documents"]
    paths: tuple[str, ...]
    start: int = 0
    stop: int = 0
    offset: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The chunk as JSON, to send it to a worker."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Chunk":
        """The chunk of `to_dict`."""
        return cls(**values | {"paths": tuple(values["paths"])})


@dataclass(frozen=True, slots=True)
class Plan:
    """All chunks of the inputs, and the SHA-256 of each input in their order."""

    chunks: tuple[Chunk, ...]
    digests: tuple[str, ...]


def plan_of(inputs: Sequence[str], columns: Columns, rows_per_part: int, has_queries: bool) -> Plan:
    """Read the inputs once and divide their rows; the same inputs always give the same chunks.

    Raises
    ------
    ValueError
        For an input that cannot be read or has no rows to scan, and for a table without the columns.
    """
    tables, documents = _found(inputs)
    if documents and not has_queries:
        raise ValueError(
            f"{documents[0]}: got a document without a question; expected --query or --queries for documents"
        )
    chunks: list[Chunk] = []
    digests = []
    for path in tables:
        divide = _parquet if path.lower().endswith(".parquet") else _json_lines
        sha256, found = divide(path, columns, rows_per_part, has_queries)
        digests.append(sha256)
        chunks += found
    digests += [digest(path) for path in documents]
    chunks += [
        Chunk(0, "documents", tuple(documents[first : first + rows_per_part]))
        for first in range(0, len(documents), rows_per_part)
    ]
    if not chunks:
        raise ValueError(f"{', '.join(inputs)}: got no row; expected at least one: check the files")
    numbered = (Chunk(**chunk.to_dict() | {"number": number}) for number, chunk in enumerate(chunks))
    return Plan(tuple(numbered), tuple(digests))


def _found(inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tables and documents that the inputs name. A folder with tables is read for these alone."""
    tables: list[str] = []
    documents: list[str] = []
    for path in inputs:
        inside = files_in(path, TABLES)
        if inside:
            tables += inside
        elif inside is not None:
            documents += _documents_in(path)
        elif path.lower().endswith(TABLES):
            tables.append(path)
        elif is_address(path):
            raise ValueError(f"{path}: got no table; expected {', '.join(TABLES)} or a folder of them")
        else:
            documents.append(path)
    return tables, documents


def _documents_in(folder: str) -> list[str]:
    found = [] if is_address(folder) else files_in(folder, tuple(KINDS))
    if not found:
        raise ValueError(
            f"{folder}: got a folder of which nothing can be read; expected files that end in "
            f"{', '.join((*TABLES, *KINDS))}"
        )
    return found


def _json_lines(
    path: str, columns: Columns, rows_per_part: int, has_queries: bool
) -> tuple[str, list[Chunk]]:
    """Divide lines; whether they have the columns is known when each is read."""
    with opened(path) as file:
        hashed = hashlib.sha256()
        chunks = list(_divided(path, _lengths(file, hashed), rows_per_part))  # the lines are read here
        return hashed.hexdigest(), chunks


def _lengths(file: Iterable[bytes], hashed: Any) -> Iterator[int]:  # noqa: ANN401 - hashlib's own type
    for line in file:
        hashed.update(line)
        yield len(line)


def _divided(path: str, lengths: Iterable[int], rows_per_part: int) -> Iterator[Chunk]:
    start = offset = position = row = 0
    for row, length in enumerate(lengths, 1):
        position += length
        if row - start >= rows_per_part or position - offset >= CHUNK_BYTES:
            yield Chunk(0, "jsonl", (path,), start, row, offset)
            start, offset = row, position
    if row > start:
        yield Chunk(0, "jsonl", (path,), start, row, offset)


def _parquet(path: str, columns: Columns, rows_per_part: int, has_queries: bool) -> tuple[str, list[Chunk]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            f'{path}: reading Parquet needs pyarrow: pip install "spscanner-rag[ray]"; JSONL does not'
        ) from error
    sha256 = digest(path)
    with opened(path) as file:
        try:
            table = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: got no Parquet file ({str(error)[:200]}); check that it is whole"
            ) from None
        for column in (columns.text,) if has_queries else (columns.text, columns.query):
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
