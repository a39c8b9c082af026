"""A batch run in a folder: rows scanned into records, and the parts, Parquet or JSONL, that hold them."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from spscanner_rag.apps.batch.inputs import Columns, InputChangedError, Plan, Query, Row, RowReader
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.writing import (
    append_records,
    complete_lines,
    earlier_run,
    folder_lock,
    parse_object,
    refuse_other_run,
)
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.units import readable

Form = Literal["parquet", "jsonl"]

Record = dict[str, Any]  # one line of a part
COLUMNS = "id query_id document_score sentence_count tokens sentences error".split()


def scan_rows(
    scanner: Scanner, rows: Sequence[Row], selection: Selection, texts: bool = True
) -> list[Record]:
    """A record for each row; rows share forward passes.

    If these fail, as for want of memory, each row is scanned alone, and what fails then gets an error.
    """
    errors = [row.error or _fault_of(scanner, row) for row in rows]
    pairs = [(row.query, row.document) for row, error in zip(rows, errors, strict=True) if error is None]
    results: list[ScanResult | str]
    try:
        results = list(scanner.scan_many(pairs))
    except Exception:
        results = [_alone(scanner, pair) for pair in pairs]
    left = iter(results)
    return [
        _record(row, next(left) if error is None else error, selection, texts)
        for row, error in zip(rows, errors, strict=True)
    ]


def _fault_of(scanner: Scanner, row: Row) -> str | None:
    try:
        scanner.pipeline.request_of((row.query, row.document))
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _alone(scanner: Scanner, pair: tuple[str, str | TextFile]) -> ScanResult | str:
    try:
        return scanner.scan(*pair)
    except Exception as error:  # whatever it is, the other rows go on
        message = str(error).strip()
        return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _record(row: Row, result: ScanResult | str, selection: Selection, texts: bool) -> Record:
    own: Record = dict.fromkeys(COLUMNS) | {"id": readable(row.id), "sentences": []}
    if row.query_id is not None:
        own["query_id"] = readable(row.query_id)
    if isinstance(result, str):
        return own | {"error": readable(result)[:500]}
    section = row.document.section if isinstance(row.document, TextFile) else None
    sentences = []
    for number in result.picks(selection).tolist():
        start, end = int(result.starts[number]), int(result.ends[number])
        sentences.append(
            {
                "start": start,
                "end": end,
                "score": float(result.scores[number]),
                "logit": float(result.logits[number]),
                "text": readable(result.text[start:end]) if texts else None,
                "section": readable(section(start)) if section else None,
            }
        )
    has_score = len(result.logits) > 0
    return own | {
        "document_score": result.document_score() if has_score else None,
        "sentence_count": len(result.logits),
        "tokens": result.tokens_read,
        "sentences": sentences,
    }


def default_form() -> Form:
    """Parquet where pyarrow is installed, else JSONL."""
    return "parquet" if find_spec("pyarrow") else "jsonl"


def part_path(folder: Path, number: int, form: Form) -> Path:
    """Return the file of a chunk."""
    return folder / f"part-{number:06d}.{form}"


DIGESTS = "_parts.jsonl"
"""A line for each part, with its SHA-256, which is written before the part: one without a line is made again."""


class PartChangedError(ValueError):
    """A part is not what the run wrote."""


def finished(folder: Path, count: int, form: Form) -> set[int]:
    """Numbers of the chunks, of ``count``, whose part is there; ``PartChangedError`` if one was changed."""
    digests = _digests(folder / DIGESTS)
    found = set()
    for number in range(count):
        path = part_path(folder, number, form)
        if path.name in digests and path.exists():
            if not path.is_file() or sha256(path.read_bytes()).hexdigest() != digests[path.name]:
                raise PartChangedError(
                    f"{path}: got another content than the run wrote; expected the same: delete it, and the same "
                    "command makes it again"
                )
            found.add(number)
    return found


def _digests(path: Path) -> dict[str, str]:
    """The SHA-256 of each part by its name, where it can be read; the last line of a part counts."""
    found = {}
    for _, line in complete_lines(path):
        with suppress(ValueError, KeyError):
            record = parse_object(line)
            found[str(record["part"])] = str(record["sha256"])
    return found


def write_part(folder: Path, number: int, form: Form, content: bytes) -> None:
    """Write a part, whole, after its digest."""
    path = part_path(folder, number, form)
    append_records(folder / DIGESTS, [{"part": path.name, "sha256": sha256(content).hexdigest()}])
    write_whole(path, content)


def encoded(records: Sequence[Record], form: Form) -> bytes:
    """The content of a part."""
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode("ascii")
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(records), schema()), file, compression="zstd")
    return file.getvalue()


def schema() -> Any:  # noqa: ANN401 - pyarrow's
    """The columns of a Parquet part, the same in every part."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float32()
    places = {"start": whole, "end": whole, "score": number, "logit": number, "text": text, "section": text}
    kinds = {"document_score": number, "sentence_count": whole, "tokens": whole}
    kinds["sentences"] = pa.list_(pa.struct(list(places.items())))
    return pa.schema([(name, kinds.get(name, text)) for name in COLUMNS])


IDENTITY = "_batch.json"  # readers of Parquet folders leave out names that begin with an underscore
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Work:
    """How the rows of all chunks are scanned."""

    columns: Columns
    queries: Sequence[Query]
    selection: Selection
    form: Form
    texts: bool = True  # records have the texts of sentences


@dataclass
class Progress:
    """The progress of a run."""

    parts: int
    found: int  # parts that an earlier run finished
    done: int = 0
    rows: int = 0
    errors: int = 0
    tokens: int = 0
    failures: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)  # ids that two rows have

    def add(self, records: Sequence[Record]) -> None:
        """Count the records of a part."""
        self.done += 1
        self.rows += len(records)
        self.errors += sum(record["error"] is not None for record in records)
        self.tokens += sum(record["tokens"] or 0 for record in records)


def run_batch(
    plan: Plan,
    work: Work,
    checkpoint: Mapping[str, Any],
    out: Path,
    scanner: Scanner,
    show: Callable[[Progress], object] = lambda progress: None,
) -> Progress:
    """Make the parts that a folder lacks; those found there are kept, and their rows are not read again.

    What keeps a whole chunk from being read is noted and does not end the run; ``show`` is called after each part.
    Raises ``OtherRunError``, ``FolderInUseError``, ``InputChangedError``, ``PartChangedError``, and ``OSError`` as
    on a full disk.
    """
    identity = {
        "format": _FORMAT,
        "inputs": list(plan.digests),
        "chunks": len(plan.chunks),
        "checkpoint": dict(checkpoint),
        "queries": [asdict(query) for query in work.queries],
        "columns": asdict(work.columns),
        "selection": {
            "top_k": work.selection.top_k,
            "threshold": work.selection.threshold,
            "aggregation": "max",
            "texts": work.texts,
        },
        "form": work.form,
    }
    with folder_lock(out):
        if any(out.glob("part-*")):
            refuse_other_run(out, earlier_run(out / IDENTITY, "parts"), identity)
        write_whole(out / IDENTITY, json.dumps(identity, indent=1) + "\n")
        had = finished(out, len(plan.chunks), work.form)
        progress = Progress(len(plan.chunks), len(had))
        left = [chunk for chunk in plan.chunks if chunk.number not in had]
        show(progress)
        reader = RowReader(work.columns, work.queries)
        for chunk in left:
            try:
                rows = reader.rows(chunk)
                plan.check_unchanged(chunk)
                records = scan_rows(scanner, rows, work.selection, work.texts)
                content = encoded(records, work.form)
            except InputChangedError:
                raise
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"[:500]
                progress.failures.append(f"part {chunk.number}: {failure}")
                continue
            write_part(out, chunk.number, work.form, content)
            progress.add(records)
            progress.repeated = reader.repeated
            show(progress)
    return progress
