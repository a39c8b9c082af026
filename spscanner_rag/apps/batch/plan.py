"""The plan of a batch: which rows of which inputs make each part."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import PurePath
from typing import NamedTuple

from spscanner_rag.apps.batch.inputs import list_inputs
from spscanner_rag.apps.batch.stores import digest_of, state_of
from spscanner_rag.apps.batch.tables import (
    Columns,
    is_parquet,
    parquet_size,
    table_rows,
)

CHUNK_BYTES = 16 * 2**20
"""A chunk ends once its rows have this many bytes, so that memory does not grow with
the length of documents."""


class InputChangedError(ValueError):
    """An input changed during the run, and rows read from it are not written."""


class Chunk(NamedTuple):
    """Rows that are scanned together into one part."""

    number: int  # from 0; names the part
    paths: tuple[str, ...]  # one file of rows, or several documents
    start: int = 0  # first row in the file
    stop: int = 0  # the row after the last one; 0 for documents
    # the file's name in ids, or its path if two inputs have the same name
    name: str = ""


class Plan(NamedTuple):
    """All chunks of the inputs, and the SHA-256 of each input, in order."""

    chunks: tuple[Chunk, ...]
    digests: tuple[str, ...]
    # each input's state when its digest was computed
    states: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()  # lines for the user

    def check_unchanged(self, chunk: Chunk) -> None:
        """Check that the files of a chunk are as they were when the plan was made.

        Raises
        ------
        InputChangedError
        """
        for path in chunk.paths:
            if state_of(path) != self.states[path]:
                raise InputChangedError(
                    f"{path}: changed while it was read; expected the same content"
                    " during a run: give the finished file, and another --out"
                )


def plan_of(
    inputs: Sequence[str], columns: Columns, rows_per_part: int, has_queries: bool
) -> Plan:
    """Divide the rows of the inputs into chunks.

    The same inputs always make the same chunks.

    Parameters
    ----------
    inputs : sequence of str
        Files, folders and addresses.
    columns : Columns
    rows_per_part : int
        Most rows of a chunk.
    has_queries : bool
        Whether questions are asked of every document, so that rows need none.

    Raises
    ------
    ValueError
        For inputs that cannot be used.
    """
    files = list_inputs(inputs)
    if files.documents and not has_queries:
        raise ValueError(
            f"{files.documents[0]}: got a document without a question; expected --query"
            " or --queries for documents"
        )
    paths = (*files.tables, *files.documents)
    states = {path: state_of(path) for path in paths}
    required_columns = [columns.text]
    if not has_queries:
        required_columns.append(columns.query)
    chunks = _table_chunks(files.tables, required_columns, rows_per_part)
    for first in range(0, len(files.documents), rows_per_part):
        documents = files.documents[first : first + rows_per_part]
        chunks.append(Chunk(len(chunks), tuple(documents)))
    if not chunks:
        raise ValueError(
            f"{', '.join(inputs)}: got no row; expected at least one: check the files"
        )
    digests = tuple(digest_of(path) for path in paths)
    plan = Plan(tuple(chunks), digests, states, tuple(files.notes))
    for chunk in chunks:
        plan.check_unchanged(chunk)
    return plan


def _table_chunks(
    tables: Sequence[str], required_columns: Sequence[str], rows_per_part: int
) -> list[Chunk]:
    names = [PurePath(path).name for path in tables]
    chunks: list[Chunk] = []
    for path, name in zip(tables, names, strict=True):
        name_in_ids = path if names.count(name) > 1 else name
        for start, stop in _row_ranges(path, required_columns, rows_per_part):
            chunks.append(Chunk(len(chunks), (path,), start, stop, name_in_ids))
    return chunks


def _row_ranges(
    path: str, columns: Sequence[str], rows_per_part: int
) -> Iterator[tuple[int, int]]:
    """Yield the first row of each chunk of a table, and the row after its last one."""
    row_lengths: Iterable[int]
    if is_parquet(path):
        size = parquet_size(path, columns)
        rows_that_fit = int(CHUNK_BYTES / max(1.0, size.row_bytes))
        rows_per_part = max(1, min(rows_per_part, rows_that_fit))
        row_lengths = repeat(0, size.rows)
    else:
        row_lengths = map(len, table_rows(path, columns))
    start = 0
    row = 0
    chunk_bytes = 0
    for row, length in enumerate(row_lengths, 1):
        chunk_bytes += length
        if row - start >= rows_per_part or chunk_bytes >= CHUNK_BYTES:
            yield start, row
            start = row
            chunk_bytes = 0
    if row > start:
        yield start, row
