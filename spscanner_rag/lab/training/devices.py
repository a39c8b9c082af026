"""Several processes that train one model, as torchrun starts them: each reads a share of every step."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

_LONGEST_WAIT = timedelta(hours=24)
"""While the leader validates and saves. A process that dies is noticed at once, by its closed connections."""


class Workers:
    """The processes that train together; one, the leader, writes the state, the log and the checkpoint."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    @property
    def leads(self) -> bool:
        """True in the process that validates and writes."""
        return self.rank == 0

    def share(self, lengths: Sequence[int]) -> list[int]:
        """Numbers of the sequences of a step that this process reads, about as many tokens as the others do."""
        if self.count == 1:
            return list(range(len(lengths)))
        loads = [0] * self.count
        own = []
        for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
            reader = loads.index(min(loads))
            loads[reader] += lengths[number]
            if reader == self.rank:
                own.append(number)
        return sorted(own)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: float, device: torch.device) -> float:
        """Give every process the sum of all gradients, and return the sum of all losses.

        It is the gradient of one process that read everything; parameters without any gradient keep none.
        """
        if self.count == 1:
            return loss
        head = torch.tensor([loss, *(parameter.grad is not None for parameter in parameters)], device=device)
        pieces = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        summed = torch.cat([head.float(), *(piece.float().flatten() for piece in pieces)])
        distributed.all_reduce(summed)
        start = len(head)
        for parameter, has_gradient in zip(parameters, summed[1:start].tolist(), strict=True):
            stop = start + parameter.numel()
            parameter.grad = (
                summed[start:stop].view_as(parameter).to(parameter.dtype) if has_gradient else None
            )
            start = stop
        return summed[0].item()

    def agreed(self, value: Any) -> Any:  # noqa: ANN401 - anything that can be pickled
        """The leader's value, for all."""
        if self.count == 1:
            return value
        values = [value]
        distributed.broadcast_object_list(values)
        return values[0]

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """Run a block in the leader, then in the others, which find the files that it made."""
        if self.count > 1 and not self.leads:
            distributed.barrier()
        yield
        if self.count > 1 and self.leads:
            distributed.barrier()

    def check_step(self, step: int) -> None:
        """Raise ``ValueError`` unless all processes start at the leader's step."""
        expected = self.agreed(step)
        if step != expected:
            raise ValueError(
                f"worker {self.rank} found the state of step {step:,} and worker 0 that of step {expected:,}; "
                "expected one --out for all: give a folder that every machine sees"
            )


@contextmanager
def joined_workers(device: str) -> Iterator[tuple[Workers, str]]:
    """Join the processes that torchrun started, if it did; give them, and the GPU of this one's local rank."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Workers(), device
        return
    on_gpu = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if not on_gpu and device not in ("auto", "cpu"):
        raise ValueError(f"--device: got {device} for {count} workers; expected auto, cpu or cuda")
    if on_gpu:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    store, rank, _ = next(rendezvous("env://", timeout=_LONGEST_WAIT))
    if os.environ.get("GROUP_WORLD_SIZE") == "1":
        # On a single machine torchrun's restarted workers get the store of the workers before them, where gloo
        # would read the addresses of the dead. Several machines count restarts each on their own.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"attempt {attempt}", store)
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=count, timeout=_LONGEST_WAIT
    )
    try:
        yield Workers(distributed.get_rank(), count), device if on_gpu else "cpu"
    finally:
        distributed.destroy_process_group()
