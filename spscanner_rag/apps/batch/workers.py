"""Workers of a batch, each with a scanner: one in this process, or actors of Ray."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from spscanner_rag.apps.batch.inputs import Chunk, Columns, Query, RowReader
from spscanner_rag.apps.batch.parts import Form, encoded, scan_rows
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner

_IN_FLIGHT = 2
"""Chunks that an actor has: the one it scans and the next. No more are lost when a run is interrupted."""
_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Pool:
    """Number and size of the actors of Ray; ``address`` is of a running cluster, None starts one."""

    workers: int
    cpus: int = 1
    gpus: float = 0
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The task of every worker."""

    scanner: dict[str, Any]  # arguments of `Scanner.from_pretrained`
    columns: Columns
    queries: Sequence[Query]
    selection: Selection
    form: Form
    texts: bool = True  # records have the texts of sentences


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

    def finish(self, chunk: Chunk) -> Finished:
        """Scan a chunk. What keeps the whole chunk from being read is returned and does not end the run."""
        try:
            rows = self._reader.rows(chunk)
            records = scan_rows(self._scanner, rows, self._work.selection, self._work.texts)
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


class _Actor:
    def __init__(self, work: Work) -> None:
        self._worker = Worker(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        (values,) = batch["chunk"]
        chunk = Chunk(**values | {"paths": tuple(values["paths"])})
        return {"finished": [astuple(self._worker.finish(chunk))]}


def finished_by_ray(chunks: Sequence[Chunk], work: Work, pool: Pool) -> Iterator[Finished]:
    """Scan chunks with a pool of actors, which read their own rows, and give them as they are done.

    An actor that dies is started again; a chunk that has killed four is not returned.
    """
    # as an error, Ray logs that an actor has arguments, which this process holds as long as the actor lives
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray
    from ray.data import DataContext

    started = not ray.is_initialized()
    if started:
        _start(pool)
    try:
        context = DataContext.get_current()
        context.max_errored_blocks = -1  # the others go on
        context.enable_progress_bars = False
        done = _mapped(chunks, work, pool)
        for batch in done.iter_batches(batch_size=None, prefetch_batches=0):
            for values in batch["finished"]:
                yield Finished(*values)
    finally:
        if started:
            ray.shutdown()


def _mapped(chunks: Sequence[Chunk], work: Work, pool: Pool) -> Any:  # noqa: ANN401 - a Dataset of Ray
    from ray.data import ActorPoolStrategy, from_items

    described = [{"chunk": asdict(chunk)} for chunk in chunks]
    actors = ActorPoolStrategy(size=min(pool.workers, len(chunks)), max_tasks_in_flight_per_actor=_IN_FLIGHT)
    with warnings.catch_warnings():  # what limits the tries is to move to another place in Ray 2.64
        warnings.filterwarnings("ignore", ".*ray_remote_args")
        return from_items(described, override_num_blocks=len(described)).map_batches(
            _Actor,
            fn_constructor_args=(work,),
            batch_size=1,
            compute=actors,
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
            max_restarts=-1,
            max_task_retries=_RETRIES,
        )


def _start(pool: Pool) -> None:
    import ray

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if pool.address is not None:
        ray.init(address=pool.address, **quiet)
    else:
        ray.init(num_cpus=pool.workers * pool.cpus, num_gpus=None, include_dashboard=False, **quiet)
