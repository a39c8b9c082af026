"""Chunks through Ray Data: a pool of actors, each with a scanner."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from spscanner_rag.apps.batch.plan import Chunk
from spscanner_rag.apps.batch.worker import Finished, Work, Worker

_IN_FLIGHT = 2
"""Chunks that an actor has: the one it scans and the next. No more are lost when a run is interrupted."""
_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Pool:
    """How many actors there are, and what each is given; ``address`` is of a running cluster, None starts one."""

    workers: int
    cpus: int = 1
    gpus: float = 0
    address: str | None = None


class _Actor:
    def __init__(self, work: Work) -> None:
        self._worker = Worker(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        (values,) = batch["chunk"]
        return {"finished": [astuple(self._worker.finish(Chunk.from_dict(values)))]}


def finished_by_ray(chunks: Sequence[Chunk], work: Work, pool: Pool) -> Iterator[Finished]:
    """Scan chunks with a pool of actors, and give them as they are done.

    Only descriptions of chunks pass through Ray on the way in: an actor reads its rows itself, so no reading task
    waits for a processor that the actors hold. An actor that dies is started again, and its chunks are
    tried up to four times; a chunk that has killed its actor each time is not returned.
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

    described = [{"chunk": chunk.to_dict()} for chunk in chunks]
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
