"""A run: makes the parts that a folder lacks, and counts its progress."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spscanner_rag.apps.batch.parts import part_name, parts_folder
from spscanner_rag.apps.batch.plan import Chunk, Plan
from spscanner_rag.apps.batch.worker import BatchTask, FinishedPart
from spscanner_rag.results.selection import SELECTION_OPTIONS

FinishAll = Callable[[Sequence[Chunk]], Iterator[FinishedPart]]
"""Scans chunks: `Worker.finish_all` in this process, `RayPool.finish_all` in many."""

_FORMAT = 1

_LATER_OPTIONS = {
    name: declared.default
    for name, declared in SELECTION_OPTIONS.items()
    if name not in ("top_k", "threshold", "order")
} | {"order": "score"}


@dataclass
class Progress:
    """The progress of a run."""

    parts: int
    resumed: int  # parts finished by an earlier run
    done: int = 0
    rows: int = 0
    errors: int = 0
    tokens: int = 0
    failures: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)  # ids that an earlier row has too

    def add(self, part: FinishedPart) -> None:
        """Count a part."""
        self.done += 1
        self.rows += part.rows
        self.errors += part.errors
        self.tokens += part.tokens


class RepeatedIds:
    """Finds ids that an earlier row has too, by a hash of every id.

    Examples
    --------
    >>> ids = RepeatedIds()
    >>> ids.add(["a", "b"]), ids.add(["b", "c"])
    ([], ['b'])
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, identifiers: Iterable[str]) -> list[str]:
        """Add ids, and return those that were there before."""
        repeated: list[str] = []
        for identifier in identifiers:
            number = hash(identifier)
            if number in self._hashes:
                repeated.append(identifier)
            self._hashes.add(number)
        return repeated


def run_batch(
    plan: Plan,
    task: BatchTask,
    checkpoint: Mapping[str, Any],
    out: str | Path,
    finish_all: FinishAll,
    show: Callable[[Progress], object] = lambda progress: None,
) -> Progress:
    """Make the parts that a folder lacks.

    Parts that the folder has are kept, and their rows are not scanned again. An error
    that affects a whole chunk is recorded, and the run continues.

    Parameters
    ----------
    plan : Plan
    task : BatchTask
    checkpoint : mapping
        What identifies the checkpoint.
    out : str or Path
        The folder for the parts, also at an address.
    finish_all : callable
        Scans chunks and yields their parts in any order.
    show : callable, optional
        Called after each part.

    Raises
    ------
    OtherRunError
        If the folder has the parts of another run.
    FolderInUseError
        If another run writes to it.
    InputChangedError, PartChangedError
        If an input, or a finished part, was changed.
    OSError
        For example on a full disk.
    """
    folder = parts_folder(out)
    with folder.locked():
        folder.begin(_identity(plan, task, checkpoint))
        finished = folder.finished(len(plan.chunks), task.form)
        progress = Progress(len(plan.chunks), len(finished))
        show(progress)
        chunks = [chunk for chunk in plan.chunks if chunk.number not in finished]
        missing = {chunk.number for chunk in chunks}
        identifiers = RepeatedIds()
        for part in finish_all(chunks):
            missing.discard(part.chunk_number)
            if part.failure is not None:
                progress.failures.append(f"part {part.chunk_number}: {part.failure}")
                continue
            folder.write_part(part_name(part.chunk_number, task.form), part.content)
            progress.repeated += identifiers.add(part.identifiers)
            progress.add(part)
            show(progress)
        for number in sorted(missing):
            progress.failures.append(f"part {number}: its worker died each time")
    return progress


def _identity(
    plan: Plan, task: BatchTask, checkpoint: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a run must have in common with the one that it resumes."""
    selection: dict[str, object] = {
        "top_k": task.selection.top_k,
        "threshold": task.selection.threshold,
        "aggregation": "max",
        "texts": task.texts,
    }
    # Options that a run of an earlier version did not have count where they are used.
    for name, usual in _LATER_OPTIONS.items():
        value = getattr(task.selection, name)
        if value != usual:
            selection[name] = value
    return {
        "format": _FORMAT,
        "inputs": list(plan.digests),
        "chunks": len(plan.chunks),
        "checkpoint": dict(checkpoint),
        "queries": [query._asdict() for query in task.queries],
        "columns": task.columns._asdict(),
        "selection": selection,
        "form": task.form,
    }
