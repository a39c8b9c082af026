"""Scans chunks with Ray Data: a pool of actors, each with a scanner."""

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spscanner_rag.apps.batch.plan import Chunk, Plan
from spscanner_rag.apps.batch.worker import BatchTask, FinishedPart, Worker
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.install_hints import import_extra

AUTO = "auto"
"""Stands for the cluster that runs on this machine, or else for one of this machine
alone, which ends with the run."""

RayModule = Any
"""The module of Ray, which the package does not depend on."""

_CHUNKS_AT_AN_ACTOR = 2
"""The chunk that an actor scans, and the next one. No more are lost when a run is
interrupted."""
_RETRIES = 3
"""Times that a chunk is scanned again because its actor died."""
_OBJECT_STORE_BYTES = 2**29
"""Shared memory of a cluster of this machine alone. Only descriptions of chunks and the
contents of parts pass through it."""


@dataclass(frozen=True)
class RayPool:
    """Actors that scan chunks.

    An actor reads the rows of its chunks itself, so every machine must see the inputs
    under the same paths. Parts come back to this process, which writes them.

    Parameters
    ----------
    task : BatchTask
    plan : Plan
        Its inputs are checked for changes when a part comes back.
    scanner_options : mapping
        Arguments of `Scanner.from_pretrained`.
    address : str
        Address of a cluster, or `AUTO`.
    workers : int, optional
        How many actors there are; by default as many as the cluster has room for.
    cpus, gpus : int
        Of one actor.
    """

    task: BatchTask
    plan: Plan
    scanner_options: Mapping[str, Any]
    address: str = AUTO
    workers: int | None = None
    cpus: int = 1
    gpus: int = 0

    def finish_all(self, chunks: Sequence[Chunk]) -> Iterator[FinishedPart]:
        """Scan chunks, and yield their parts as they are finished.

        An actor that dies is started again, and its chunks are scanned again. A chunk
        whose actor died each time has no part.
        """
        if not chunks:
            return
        ray = _quiet_ray()
        self._connect(ray)
        try:
            for part in self._parts(ray, chunks):
                if part.failure is None:
                    self.plan.check_unchanged(self.plan.chunks[part.chunk_number])
                yield part
        finally:
            ray.shutdown()

    def _parts(
        self,
        ray: RayModule,
        chunks: Sequence[Chunk],
    ) -> Iterator[FinishedPart]:
        context = ray.data.DataContext.get_current()
        context.max_errored_blocks = -1  # a chunk that fails does not end the others
        context.enable_progress_bars = False
        context.execution_options.preserve_order = False
        descriptions = [{"chunk": chunk._asdict()} for chunk in chunks]
        blocks = ray.data.from_items(descriptions, override_num_blocks=len(chunks))
        actors = ray.data.ActorPoolStrategy(
            size=min(self.workers or self._workers_with_room(ray), len(chunks)),
            max_tasks_in_flight_per_actor=_CHUNKS_AT_AN_ACTOR,
        )
        with warnings.catch_warnings():
            # Ray 2.64 is to move the arguments that limit how often a task is tried.
            warnings.filterwarnings("ignore", ".*ray_remote_args")
            parts = blocks.map_batches(
                _Actor,
                fn_constructor_args=(dict(self.scanner_options), self.task),
                batch_size=1,
                compute=actors,
                num_cpus=self.cpus,
                num_gpus=self.gpus,
                max_restarts=-1,
                max_task_retries=_RETRIES,
            )
        for batch in parts.iter_batches(batch_size=None, prefetch_batches=0):
            for values in batch["part"]:
                yield FinishedPart(**values)._replace(
                    identifiers=tuple(values["identifiers"])
                )

    def _connect(self, ray: RayModule) -> None:
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            ray.init(address=self.address, **quiet)
        except ConnectionError as error:
            if self.address != AUTO:
                raise ValueError(
                    f"--ray: got {self.address!r}; expected the address of a running"
                    f" cluster, or {AUTO}: {str(error)[:200]}"
                ) from None
            cpus = None if self.workers is None else self.workers * self.cpus
            ray.init(
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                **quiet,
            )

    def _workers_with_room(self, ray: RayModule) -> int:
        resources = ray.cluster_resources()
        room = resources.get("CPU", 0) // self.cpus
        if self.gpus:
            room = min(room, resources.get("GPU", 0) // self.gpus)
        if room < 1:
            raise ValueError(
                "--ray: got a cluster without room for a worker of"
                f" {self.cpus} CPUs and {self.gpus} GPUs; expected one with more, or"
                " fewer --threads"
            )
        return int(room)


class _Actor:
    """A worker in a process of Ray's."""

    def __init__(self, scanner_options: dict[str, Any], task: BatchTask) -> None:
        self._worker = Worker(Scanner.from_pretrained(**scanner_options), task)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        (description,) = batch["chunk"]
        paths = tuple(description["paths"])
        part = self._worker.finish(Chunk(**description | {"paths": paths}))
        return {"part": [part._asdict()]}


def _quiet_ray() -> RayModule:
    """Import Ray, which then reports nothing and sends nothing to its makers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # As an error, Ray logs that an actor has arguments, which this process holds as
    # long as the actor lives.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    ray = import_extra("ray", "--ray", "ray")
    import_extra("ray.data", "--ray", "ray")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray
