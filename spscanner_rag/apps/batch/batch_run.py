"""A batch run in a folder: its identity, its lock, and the parts that are left to make."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spscanner_rag.apps.batch.inputs import Columns, InputChangedError, Plan, Query, RowReader
from spscanner_rag.apps.batch.parts import Form, Record, encoded, finished, scan_rows, write_part
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.folder_lock import folder_lock
from spscanner_rag.files.json_files import difference, parse_json
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner

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


class OtherRunError(ValueError):
    """A folder holds the parts of a run on other inputs, or with another checkpoint or other options."""


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
        _check(out, identity)
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


def _check(out: Path, identity: Mapping[str, Any]) -> None:
    """Refuse the folder of another run; write what identifies this one to a new folder."""
    path = out / IDENTITY
    if not path.exists():
        if any(out.glob("part-*")):
            raise OtherRunError(
                f"{out}: got parts without {IDENTITY}, which says what they were made of; expected both: give "
                "another --out"
            )
        write_whole(path, json.dumps(identity, indent=1) + "\n")
        return
    try:
        before = parse_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise OtherRunError(
            f"{path}: expected the JSON object that says what the parts were made of, got a damaged file "
            f"({error}); give another --out, or delete the folder"
        ) from None
    other = difference(before, identity)
    if other:
        raise OtherRunError(
            f"{out} holds the parts of a run on other inputs, or with another checkpoint or other options "
            f"({other}); give the same again, or another --out"
        )
