"""Several processes that train one model, as torchrun starts them.

Each process reads a share of every step's examples, and their gradients are added up.
The first one, the leader, validates and writes the state, the log and the checkpoint.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import distributed, nn

Made = TypeVar("Made")

_LONGEST_WAIT = timedelta(hours=24)
"""While the leader validates and saves. A process that dies is noticed at once, by its
closed connections."""


class Processes:
    """The processes that train together, of which the first is the leader.

    Parameters
    ----------
    rank : int, default 0
        The number of this process.
    count : int, default 1
        The number of all processes.

    Examples
    --------
    >>> from spscanner_lab.training.processes import Processes
    >>> Processes(rank=1, count=2).share([100, 40, 30, 20])
    [1, 2, 3]
    """

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank = rank
        self.count = count

    @property
    def leads(self) -> bool:
        """Whether this process is the one that validates and writes."""
        return self.rank == 0

    def share(self, lengths: Sequence[int]) -> list[int]:
        """Return the numbers of a step's examples that this process reads.

        All processes read about as many tokens.

        Parameters
        ----------
        lengths : sequence of int
            Tokens of each example of the step.
        """
        if self.count == 1:
            return list(range(len(lengths)))
        tokens_by_rank = [0] * self.count
        numbers = []
        for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
            rank = tokens_by_rank.index(min(tokens_by_rank))
            tokens_by_rank[rank] += lengths[number]
            if rank == self.rank:
                numbers.append(number)
        return sorted(numbers)

    def add_up(self, parameters: Sequence[nn.Parameter], loss: float) -> float:
        """Give every process the sum of all gradients, and return that of all losses.

        The parts of a step's loss add up to it, so this is the gradient of one process
        that read everything. A parameter without a gradient in any process keeps none.

        Parameters
        ----------
        parameters : sequence of Parameter
            In the same order in every process.
        loss : float
            The loss of this process's share.
        """
        if self.count == 1:
            return loss
        device = parameters[0].device
        has_gradient = [parameter.grad is not None for parameter in parameters]
        pieces = [torch.tensor([loss, *has_gradient], device=device).float()]
        for parameter in parameters:
            gradient = parameter.grad
            if gradient is None:
                gradient = torch.zeros_like(parameter)
            pieces.append(gradient.float().flatten())
        summed = torch.cat(pieces)
        distributed.all_reduce(summed)
        sizes = [1, len(parameters), *(parameter.numel() for parameter in parameters)]
        total_loss, counts, *gradients = torch.split(summed, sizes)
        for parameter, count, gradient in zip(
            parameters, counts.tolist(), gradients, strict=True
        ):
            parameter.grad = None
            if count:
                parameter.grad = gradient.view_as(parameter).to(parameter.dtype)
        return float(total_loss.item())

    def wait_for_leader(self) -> None:
        """Return when the leader has called this as well."""
        if self.count > 1:
            distributed.barrier()

    def leader_first(self, make: Callable[[], Made]) -> Made:
        """Return what a function makes, in the leader before it is called elsewhere.

        The others find the files that the leader wrote, instead of writing them at the
        same time.

        Parameters
        ----------
        make : callable
            Called once in every process.
        """
        if not self.leads:
            self.wait_for_leader()
        result = make()
        if self.leads:
            self.wait_for_leader()
        return result

    def check_step(self, step: int) -> None:
        """Raise ``ValueError`` unless all processes start at the leader's step."""
        if self.count == 1:
            return
        steps = [step]
        distributed.broadcast_object_list(steps)
        if step != steps[0]:
            raise ValueError(
                f"process {self.rank} found the state of step {step:,} and process 0 "
                f"that of step {steps[0]:,}; expected one --out for all: give a folder "
                "that every machine sees"
            )


@contextmanager
def joined_processes(device: str) -> Iterator[tuple[Processes, str]]:
    """Join the processes that torchrun started, if it did.

    CPUs exchange gradients through gloo, NVIDIA GPUs through NCCL.

    Parameters
    ----------
    device : str
        "auto", "cpu" or "cuda"; one process alone takes any.

    Yields
    ------
    tuple
        The processes, and the device of this one: the GPU of its local rank, or the
        CPU.

    Raises
    ------
    ValueError
        For another device than these, with several processes.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(), device
        return
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(
            f"--device: got {device} for {count} processes; expected auto, cpu or cuda"
        )
    on_gpu = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    if on_gpu:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    else:
        device = "cpu"
    backend = "nccl" if on_gpu else "gloo"
    distributed.init_process_group(backend, timeout=_LONGEST_WAIT)
    try:
        yield Processes(distributed.get_rank(), count), device
    finally:
        distributed.destroy_process_group()
