"""Reads tables of rows: lines of JSON, and Parquet files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spscanner_rag.apps.batch.stores import open_input
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.system.strict_json import parse_object

_PARQUET = ".parquet"
TABLE_ENDINGS = (_PARQUET, ".jsonl", ".ndjson")
_PARQUET_ROWS_AT_ONCE = 256


class Columns(NamedTuple):
    """The names of the columns, or keys of JSON objects, that hold a row's values."""

    id: str = "id"
    query: str = "query"
    text: str = "text"


class ParquetSize(NamedTuple):
    """How long a Parquet file is."""

    rows: int
    row_bytes: float  # mean length of a row


def is_parquet(path: str) -> bool:
    """Return whether a table's ending says that it is a Parquet file."""
    return path.lower().endswith(_PARQUET)


def parquet_size(path: str, columns: Sequence[str]) -> ParquetSize:
    """Return the number of rows of a Parquet file, and their mean length in bytes.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If the file is damaged, or lacks one of the columns.
    """
    task = f"{path}: reading Parquet"
    pyarrow = import_extra("pyarrow", task, "parquet")
    parquet = import_extra("pyarrow.parquet", task, "parquet")
    with open_input(path) as file:
        try:
            table = parquet.ParquetFile(file)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(
                f"{path}: not a Parquet file ({str(error)[:200]}); check that it is"
                " complete"
            ) from None
        names = table.schema_arrow.names
        missing = [column for column in columns if column not in names]
        if missing:
            raise ValueError(
                f"{path}: got the columns {', '.join(names)}; expected a column of"
                f" strings {missing[0]!r}: see --text-column and --query-column"
            )
        metadata = table.metadata
        table_bytes = 0
        for number in range(metadata.num_row_groups):
            table_bytes += metadata.row_group(number).total_byte_size
        return ParquetSize(metadata.num_rows, table_bytes / max(1, metadata.num_rows))


def table_rows(path: str, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a file: lines, or one-row record batches of Parquet.

    Each row group is decoded once. Whether a line has the columns is checked when
    `row_values` reads it.
    """
    with open_input(path) as file:
        if is_parquet(path):
            yield from _parquet_rows(file, columns)
        else:
            yield from file


def _parquet_rows(file: Any, columns: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file)
    names = [name for name in table.schema_arrow.names if name in columns]
    batches = table.iter_batches(
        batch_size=_PARQUET_ROWS_AT_ONCE, columns=names, use_threads=False
    )
    for batch in batches:
        for number in range(batch.num_rows):
            yield batch.slice(number, 1)


def row_values(row: Any) -> dict[str, Any]:  # noqa: ANN401 - a line, or pyarrow's batch
    """Return the values of a row.

    Raises
    ------
    ValueError
        If it is not a JSON object, or has strings that are not UTF-8.
    """
    if not isinstance(row, bytes):
        return dict(row.to_pylist()[0])
    try:
        return parse_object(row)
    except ValueError as error:
        raise ValueError(
            f"not a JSON object ({str(error)[:200]}); expected one on each line"
        ) from None


def string_in(values: Mapping[str, object], column: str) -> str:
    """Return the string in a column of a row.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> string_in({"text": "It rained."}, "text")
    'It rained.'
    """
    value = values.get(column)
    if not isinstance(value, str):
        problem = f"got {type(value).__name__}" if column in values else "missing"
        raise ValueError(f"{column}: {problem}; expected a string")
    return value
