"""A batch run in a folder: its identity, its lock, and the workers that make the parts that are left."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spscanner_rag.apps.batch.inputs import Plan
from spscanner_rag.apps.batch.parts import finished, part_path
from spscanner_rag.apps.batch.workers import Finished, Pool, Work, Worker, finished_by_ray
from spscanner_rag.checkpoint.whole_file import whole_file, write_whole
from spscanner_rag.files.folder_lock import folder_lock
from spscanner_rag.files.json_files import difference, parse_json
from spscanner_rag.scanner import Scanner

IDENTITY = "_batch.json"  # readers of Parquet folders leave out names that begin with an underscore
_FORMAT = 1


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

    def add(self, one: Finished) -> None:
        """Count a chunk."""
        self.done += 1
        self.rows += one.rows
        self.errors += one.errors
        self.tokens += one.tokens


class OtherRunError(ValueError):
    """A folder holds the parts of a run on other inputs, or with another checkpoint or other options."""


def run_batch(
    plan: Plan,
    work: Work,
    checkpoint: Mapping[str, Any],
    out: Path,
    pool: Pool | None = None,
    scanner: Scanner | None = None,
    show: Callable[[Progress], object] = lambda progress: None,
) -> Progress:
    """Make the parts that a folder lacks; those found there are kept, and their rows are not read again.

    Without ``pool`` this process scans, with ``scanner`` or one that ``work`` describes; ``show`` is called
    after each part. Raises ``OtherRunError``, ``FolderInUseError``, and ``OSError`` as on a full disk.
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
        missing = {chunk.number for chunk in left}
        if pool is not None and left:
            made = finished_by_ray(left, work, pool)
        else:  # a scanner is loaded only if there is something to read
            made = map(Worker(work, scanner).finish, left) if left else iter(())
        for one in made:
            missing.discard(one.number)
            if one.failure is not None:
                progress.failures.append(f"part {one.number}: {one.failure}")
                continue
            with whole_file(part_path(out, one.number, work.form)) as unfinished:
                unfinished.write_bytes(one.content)
            progress.add(one)
            show(progress)
        progress.failures += [f"part {number}: its worker died each time" for number in sorted(missing)]
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
