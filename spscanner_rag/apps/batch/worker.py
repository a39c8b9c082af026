"""A worker of a batch: a scanner that turns chunks into the content of parts, in this process or another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spscanner_rag.apps.batch.parts import Form, encoded
from spscanner_rag.apps.batch.plan import Chunk
from spscanner_rag.apps.batch.reading import RowReader
from spscanner_rag.apps.batch.rows import Columns, Query
from spscanner_rag.apps.batch.scanning import Selection, scan_rows
from spscanner_rag.scanner import Scanner


@dataclass(frozen=True, slots=True)
class Work:
    """What every worker does; ``scanner`` has the arguments of `Scanner.from_pretrained`."""

    scanner: dict[str, Any]
    columns: Columns
    queries: Sequence[Query]
    selection: Selection
    form: Form


@dataclass(frozen=True, slots=True)
class Finished:
    """A chunk that a worker is done with: the content of its part, or why there is none."""

    number: int
    content: bytes = b""
    rows: int = 0
    errors: int = 0
    tokens: int = 0
    failure: str | None = None


class Worker:
    """Holds a scanner, which is loaded once, and the place up to which the inputs are read."""

    def __init__(self, work: Work, scanner: Scanner | None = None) -> None:
        self._work = work
        self._scanner = scanner or Scanner.from_pretrained(**work.scanner)
        self._reader = RowReader(work.columns, work.queries)

    def close(self) -> None:
        """Close the input that is being read."""
        self._reader.close()

    def finish(self, chunk: Chunk) -> Finished:
        """Scan a chunk. What keeps the whole chunk from being read is returned and does not end the run."""
        try:
            rows = self._reader.rows(chunk)
            records = scan_rows(self._scanner, rows, self._work.selection)
            content = encoded(records, self._work.form)
        except Exception as error:
            return Finished(chunk.number, failure=f"{type(error).__name__}: {error}"[:500])
        return Finished(
            chunk.number,
            content,
            len(records),
            sum(record["error"] is not None for record in records),
            sum(record["tokens"] or 0 for record in records),
        )
