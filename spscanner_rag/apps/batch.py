"""A batch run: scans rows of files into a folder of Parquet or JSONL parts, which survive an interruption."""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice, repeat
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import KINDS, read, regular_files
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.scan.pipeline import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.folder_lock import folder_lock
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.run_inputs import earlier_run, refuse_other_run
from spscanner_rag.system.strict_json import parse_object
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.units import readable

TABLES = (".parquet", ".jsonl", ".ndjson")
CHUNK_BYTES = 16 * 2**20
"""A chunk ends once its rows have this many bytes, so that memory does not grow with
the length of documents."""

IDENTITY = (  # readers of Parquet folders ignore names that begin with an underscore
    "_batch.json"
)
DIGESTS = "_parts.jsonl"
"""A line with the SHA-256 of each part, written before the part; a part without a
line is made again."""

COLUMNS = "id query_id document_score sentence_count tokens sentences error".split()

_FORMAT = 1

Form = Literal["parquet", "jsonl"]
Record = dict[str, Any]  # one line of a part


class InputChangedError(ValueError):
    """An input changed after the run had begun; rows read from it are not written."""


class PartChangedError(ValueError):
    """The content of a part is not what the run wrote."""


class Columns(NamedTuple):
    """The names of the columns, or of the keys of JSON objects, that hold a row's values."""

    id: str = "id"
    query: str = "query"
    text: str = "text"


class Query(NamedTuple):
    """A question for all documents."""

    id: str | None
    text: str


class Row(NamedTuple):
    """One question about one document; ``error`` says why it cannot be scanned."""

    id: str
    query_id: str | None = None
    query: str = ""
    document: str | TextFile = ""
    error: str | None = None


class Chunk(NamedTuple):
    """Rows that are scanned together into one part."""

    number: int  # from 0; names the part
    paths: tuple[str, ...]  # one file of rows, or several documents
    start: int = 0  # first row in the file
    stop: int = 0  # the row after the last one; 0 for documents
    name: str = (
        ""  # the file's name in ids, or its path if two inputs have the same name
    )


class Plan(NamedTuple):
    """All chunks of the inputs, and the SHA-256 of each input, in order."""

    chunks: tuple[Chunk, ...]
    digests: tuple[str, ...]
    states: Mapping[
        str, tuple[int, ...]
    ]  # each input's state when its digest was computed
    notes: tuple[str, ...] = ()  # lines for the user

    def check_unchanged(self, chunk: Chunk) -> None:
        """Raise ``InputChangedError`` if a file of a chunk has changed since the plan was made."""
        for path in chunk.paths:
            if _state(path) != self.states[path]:
                raise InputChangedError(
                    f"{path}: changed while it was read; expected the same content"
                    " during a run: give the finished file, and another --out"
                )


def plan_of(
    inputs: Sequence[str], columns: Columns, rows_per_part: int, has_queries: bool
) -> Plan:
    """Divide the rows of the inputs into chunks, deterministically.

    ``ValueError`` for unusable inputs.
    """
    tables, documents, notes = _found(inputs)
    if documents and not has_queries:
        raise ValueError(
            f"{documents[0]}: got a document without a question; expected --query or"
            " --queries for documents"
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
        chunks.append(
            Chunk(len(chunks), tuple(documents[first : first + rows_per_part]))
        )
    if not chunks:
        raise ValueError(
            f"{', '.join(inputs)}: got no row; expected at least one: check the files"
        )
    plan = Plan(tuple(chunks), tuple(map(_digest, files)), states, tuple(notes))
    for chunk in chunks:
        plan.check_unchanged(chunk)
    return plan


class RowReader:
    """Reads the chunks of a plan in order.

    Without ``queries``, each row has its own question.
    """

    def __init__(self, columns: Columns, queries: Sequence[Query] = ()) -> None:
        self.columns, self.queries = columns, queries
        self.repeated: list[str] = []  # ids that an earlier row has too
        self._ids: set[int] = set()  # hashes of all ids so far
        self._table: Iterator[Any] = iter(())  # rows of the open file
        self._path, self._at = "", 0  # the open file, and the number of its next row

    def rows(self, chunk: Chunk) -> list[Row]:
        """The rows of a chunk; a row that cannot be read has an error instead of a document."""
        if not chunk.stop:
            return [row for path in chunk.paths for row in self._document(path)]
        rows = enumerate(self._raw(chunk), chunk.start + 1)
        return [
            found
            for number, row in rows
            for found in self._rows_of(row, f"{chunk.name}:{number}")
        ]

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
            given = values.get(self.columns.id)
            if given is not None:
                identifier = (
                    given if isinstance(given, str) else json.dumps(given, default=str)
                )
            self._count(identifier)
            text = _string(values, self.columns.text)
            if not self.queries:
                query = _string(values, self.columns.query)
        except ValueError as error:
            return self._asked(identifier, error=str(error))
        return self._asked(identifier, text, query)

    def _count(self, identifier: str) -> None:
        if hash(identifier) in self._ids:
            self.repeated.append(identifier)
        self._ids.add(hash(identifier))

    def _asked(
        self,
        identifier: str,
        document: str | TextFile = "",
        query: str = "",
        error: str | None = None,
    ) -> list[Row]:
        asked = self.queries or [Query(None, query)]
        return [Row(identifier, each.id, each.text, document, error) for each in asked]

    def _raw(self, chunk: Chunk) -> Iterator[Any]:
        (path,) = chunk.paths
        if (
            self._path != path or self._at > chunk.start
        ):  # another file, or the same file named again
            self._table, self._at = _raw_rows(path, self.columns), 0
        self._path = ""  # if reading fails, the next chunk opens the file again
        yield from islice(self._table, chunk.start - self._at, chunk.stop - self._at)
        self._path, self._at = path, chunk.stop


def _found(inputs: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """List the tables and documents that the inputs name, and notes.

    In a folder with tables, only they are read.

    Hidden files, and files with a name or a folder that begins with an underscore, are
    left out.
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
            if own := sorted(
                file for file in inside if f"{os.sep}_" not in file[len(path) - 1 :]
            ):
                kind += own
                notes += told
                break
        else:
            raise ValueError(
                f"{path}: got a folder in which nothing can be read; expected files"
                f" that end in {', '.join((*TABLES, *KINDS))}"
            )
    return tables, documents, notes


def _state(path: str) -> tuple[int, ...]:
    """Values that change whenever the file does; empty for a missing file."""
    try:
        status = os.stat(path)
    except OSError:
        return ()  # opening it raises the error
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _opened(path: str) -> io.BufferedReader:
    """Open a regular file for reading; ``ValueError`` names a path that cannot be read."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(
                f"{path}: not a regular file; expected one that can be read twice: save"
                " it first"
            )
        return open(path, "rb")
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read ({error.strerror}); expected an existing file:"
            " check the path and the permissions"
        ) from None


def _digest(path: str) -> str:
    if _state(path)[2:3] == (
        0,
    ):  # size 0: empty, or a file such as those of /proc, some of which never end
        return hashlib.sha256().hexdigest()
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stretches(
    path: str, columns: Sequence[str], most: int
) -> Iterator[tuple[int, int]]:
    """Yield the first row of each chunk of a table, and the row after its last one."""
    lengths: Iterable[int]
    if path.lower().endswith(".parquet"):
        rows, row_bytes = _parquet_size(path, columns)
        lengths, most = (
            repeat(0, rows),
            max(1, min(most, int(CHUNK_BYTES / max(1.0, row_bytes)))),
        )
    else:
        lengths = map(
            len, _raw_rows(path, columns)
        )  # whether a line has the columns is checked when it is read
    start = size = row = 0
    for row, length in enumerate(lengths, 1):
        size += length
        if row - start >= most or size >= CHUNK_BYTES:
            yield start, row
            start, size = row, 0
    if row > start:
        yield start, row


def _parquet_size(path: str, columns: Sequence[str]) -> tuple[int, float]:
    """The number of rows of a file, and their mean length in bytes.

    ``ValueError`` if it lacks a column.
    """
    owner = f"{path}: reading Parquet"
    pa, pq = (
        import_extra("pyarrow", owner, "parquet"),
        import_extra("pyarrow.parquet", owner, "parquet"),
    )
    with _opened(path) as file:
        try:
            table = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"{path}: not a Parquet file ({str(error)[:200]}); check that it is"
                " complete"
            ) from None
        names, found = table.schema_arrow.names, table.metadata
        if missing := [column for column in columns if column not in names]:
            raise ValueError(
                f"{path}: got the columns {', '.join(names)}; expected a column of"
                f" strings {missing[0]!r}: see --text-column and --query-column"
            )
        groups = (
            found.row_group(number).total_byte_size
            for number in range(found.num_row_groups)
        )
        return found.num_rows, sum(groups) / max(1, found.num_rows)


def _raw_rows(path: str, columns: Sequence[str]) -> Iterator[Any]:
    """Yield all rows of a file: lines, or one-row record batches of Parquet.

    Each row group is decoded once.
    """
    with _opened(path) as file:
        if not path.lower().endswith(".parquet"):
            yield from file
            return
        import pyarrow.parquet as pq

        table = pq.ParquetFile(file)
        names = [name for name in table.schema_arrow.names if name in columns]
        for batch in table.iter_batches(
            batch_size=256, columns=names, use_threads=False
        ):
            for number in range(batch.num_rows):
                yield batch.slice(number, 1)


def _values(
    row: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The values of a row; ``ValueError`` if it is not a JSON object or has strings that are not UTF-8."""
    if not isinstance(row, bytes):
        return dict(row.to_pylist()[0])
    try:
        return parse_object(row)
    except ValueError as error:
        raise ValueError(
            f"not a JSON object ({str(error)[:200]}); expected one on each line"
        ) from None


def _string(values: Mapping[str, object], column: str) -> str:
    """The string in a column of a record; ``ValueError`` if there is none."""
    value = values.get(column)
    if not isinstance(value, str):
        got = f"got {type(value).__name__}" if column in values else "missing"
        raise ValueError(f"{column}: {got}; expected a string")
    return value


def scan_rows(
    scanner: Scanner, rows: Sequence[Row], selection: Selection, texts: bool = True
) -> list[Record]:
    """Scan rows in shared forward passes, and return a record for each.

    If the passes fail, for example for lack of memory, each row is scanned alone, and a
    failing one gets an error.
    """
    asked = [_request(scanner, row) for row in rows]
    requests = [each for each in asked if not isinstance(each, str)]
    results: list[ScanResult | str] | None = None
    with suppress(Exception):
        results = list(scanner.scan_many(requests))
    if (
        results is None
    ):  # outside the handler, because the error keeps the memory of the failed passes
        results = [_alone(scanner, request) for request in requests]
    left = iter(results)
    return [
        _record(row, each if isinstance(each, str) else next(left), selection, texts)
        for row, each in zip(rows, asked, strict=True)
    ]


def _request(scanner: Scanner, row: Row) -> ScanRequest | str:
    try:
        return row.error or scanner.pipeline.request_of((row.query, row.document))
    except (ValueError, TypeError) as error:
        return str(error)


def _alone(scanner: Scanner, request: ScanRequest) -> ScanResult | str:
    try:
        return scanner.scan_many([request])[0]
    except Exception as error:  # any error: the other rows are still scanned
        return f"{type(error).__name__}: {error}".strip().removesuffix(":")


def _record(
    row: Row, result: ScanResult | str, selection: Selection, texts: bool
) -> Record:
    own: Record = dict.fromkeys(COLUMNS) | {"id": readable(row.id), "sentences": []}
    own["query_id"] = row.query_id and readable(row.query_id)
    if isinstance(result, str):
        return own | {"error": readable(result)[:500]}
    section = row.document.section if isinstance(row.document, TextFile) else None
    for number in result.picks(selection).tolist():
        start, end = int(result.starts[number]), int(result.ends[number])
        own["sentences"].append(
            {
                "start": start,
                "end": end,
                "score": float(result.scores[number]),
                "logit": float(result.logits[number]),
                "text": readable(result.text[start:end]) if texts else None,
                "section": readable(section(start)) if section else None,
            }
        )
    own["document_score"] = result.document_score() if len(result.logits) else None
    return own | {"sentence_count": len(result.logits), "tokens": result.tokens_read}


def _part(folder: Path, number: int, form: Form) -> Path:
    return folder / f"part-{number:06d}.{form}"


def _finished(folder: Path, count: int, form: Form) -> set[int]:
    """Numbers of the chunks, of ``count``, whose part exists.

    ``PartChangedError`` if a part was changed.
    """
    digests, found = dict[str, str](), set()
    for _, line in complete_lines(folder / DIGESTS):  # a part's last line counts
        with suppress(ValueError, KeyError):
            record = parse_object(line)
            digests[str(record["part"])] = str(record["sha256"])
    for number in range(count):
        path = _part(folder, number, form)
        if path.name in digests and path.exists():
            if (
                not path.is_file()
                or hashlib.sha256(path.read_bytes()).hexdigest() != digests[path.name]
            ):
                raise PartChangedError(
                    f"{path}: its content is not what the run wrote; delete it, and run"
                    " the same command to make it again"
                )
            found.add(number)
    return found


def _encoded(records: Sequence[Record], form: Form) -> bytes:
    """Encode the records of a part. All Parquet parts have the same columns."""
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode("ascii")
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole, number = pa.string(), pa.int64(), pa.float32()
    places = {
        "start": whole,
        "end": whole,
        "score": number,
        "logit": number,
        "text": text,
        "section": text,
    }
    kinds = {"document_score": number, "sentence_count": whole, "tokens": whole}
    kinds["sentences"] = pa.list_(pa.struct(list(places.items())))
    schema = pa.schema([(name, kinds.get(name, text)) for name in COLUMNS])
    file = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(list(records), schema), file, compression="zstd"
    )
    return file.getvalue()


@dataclass
class Progress:
    """The progress of a run."""

    parts: int
    found: int  # parts finished by an earlier run
    done: int = 0
    rows: int = 0
    errors: int = 0
    tokens: int = 0
    failures: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)  # ids that an earlier row has too

    def add(self, records: Sequence[Record]) -> None:
        """Count the records of a part."""
        self.done += 1
        self.rows += len(records)
        self.errors += sum(record["error"] is not None for record in records)
        self.tokens += sum(record["tokens"] or 0 for record in records)


def run_batch(
    plan: Plan,
    reader: RowReader,
    selection: Selection,
    checkpoint: Mapping[str, Any],
    out: Path,
    scanner: Scanner,
    *,
    form: Form | None = None,
    texts: bool = True,
    show: Callable[[Progress], object] = lambda progress: None,
) -> Progress:
    """Make the parts that a folder lacks.

    Parts found there are kept, and their rows are not scanned again.

    ``form`` is Parquet by default if pyarrow is installed, else JSONL; with ``texts``,
    records have the sentences' texts. An error that affects a whole chunk is recorded,
    and the run continues; ``show`` is called after each part. Raises ``OtherRunError``,
    ``FolderInUseError``, ``InputChangedError``, ``PartChangedError``, and ``OSError``,
    for example on a full disk.
    """
    form = form or ("parquet" if find_spec("pyarrow") else "jsonl")
    identity = {
        "format": _FORMAT,
        "inputs": list(plan.digests),
        "chunks": len(plan.chunks),
        "checkpoint": dict(checkpoint),
        "queries": [query._asdict() for query in reader.queries],
        "columns": reader.columns._asdict(),
        "selection": (
            {"top_k": selection.top_k, "threshold": selection.threshold}
            | {"aggregation": "max", "texts": texts}
        ),
        "form": form,
    }
    with folder_lock(out):
        if any(out.glob("part-*")):
            refuse_other_run(out, earlier_run(out / IDENTITY, "parts"), identity)
        write_whole(out / IDENTITY, json.dumps(identity, indent=1) + "\n")
        had = _finished(out, len(plan.chunks), form)
        progress = Progress(len(plan.chunks), len(had), repeated=reader.repeated)
        show(progress)
        for chunk in (each for each in plan.chunks if each.number not in had):
            try:
                rows = reader.rows(chunk)
                plan.check_unchanged(chunk)
                records = scan_rows(scanner, rows, selection, texts)
                content = _encoded(records, form)
            except InputChangedError:
                raise
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"[:500]
                progress.failures.append(f"part {chunk.number}: {failure}")
                continue
            path = _part(out, chunk.number, form)
            digest = hashlib.sha256(content).hexdigest()
            append_records(out / DIGESTS, [{"part": path.name, "sha256": digest}])
            write_whole(path, content)
            progress.add(records)
            show(progress)
    return progress
