"""A worker: holds a scanner, and turns chunks into the content of parts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spscanner_rag.apps.batch.encoding import PartForm, encode_records
from spscanner_rag.apps.batch.plan import Chunk, InputChangedError
from spscanner_rag.apps.batch.rows import Query, Row, RowReader
from spscanner_rag.apps.batch.scanning import scan_rows
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner

_LONGEST_FAILURE = 500


@dataclass(frozen=True)
class BatchTask:
    """What is done with every row."""

    columns: Columns
    queries: Sequence[Query]  # asked of every document; empty: rows have their own
    selection: Selection
    form: PartForm
    texts: bool = True  # whether records have the texts of sentences


class FinishedPart(NamedTuple):
    """The content of a part, or why there is none."""

    chunk_number: int
    content: bytes = b""
    rows: int = 0
    errors: int = 0  # rows with an error
    tokens: int = 0
    identifiers: tuple[str, ...] = ()  # an id for each document
    failure: str | None = None


class Worker:
    """Scans chunks in this process.

    Parameters
    ----------
    scanner : Scanner
    task : BatchTask
    check_unchanged : callable, optional
        Called with a chunk once its rows are read; raises `InputChangedError`.
    """

    def __init__(
        self,
        scanner: Scanner,
        task: BatchTask,
        check_unchanged: Callable[[Chunk], None] = lambda chunk: None,
    ) -> None:
        self._scanner = scanner
        self._task = task
        self._check_unchanged = check_unchanged
        self._reader = RowReader(task.columns, task.queries)

    def finish_all(self, chunks: Iterable[Chunk]) -> Iterator[FinishedPart]:
        """Scan chunks one after the other."""
        for chunk in chunks:
            yield self.finish(chunk)

    def finish(self, chunk: Chunk) -> FinishedPart:
        """Scan a chunk.

        An error that affects all its rows is returned, so that the run continues.

        Raises
        ------
        InputChangedError
        """
        try:
            rows = self._reader.rows(chunk)
            self._check_unchanged(chunk)
            records = scan_rows(
                self._scanner, rows, self._task.selection, self._task.texts
            )
            content = encode_records(records, self._task.form)
        except InputChangedError:
            raise
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"[:_LONGEST_FAILURE]
            return FinishedPart(chunk.number, failure=failure)
        return FinishedPart(
            chunk.number,
            content,
            rows=len(records),
            errors=sum(record["error"] is not None for record in records),
            tokens=sum(record["tokens"] or 0 for record in records),
            identifiers=self._identifiers(rows),
        )

    def _identifiers(self, rows: Sequence[Row]) -> tuple[str, ...]:
        rows_of_a_document = max(1, len(self._task.queries))
        return tuple(row.id for row in rows[::rows_of_a_document])
