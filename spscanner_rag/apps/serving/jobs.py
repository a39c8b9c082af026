"""A job: the texts of one HTTP request, to be read with one question, and what becomes of them."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from spscanner_rag.scan.pipeline import ScanRequest, Scored
from spscanner_rag.scorers import Progress


@dataclass(eq=False, slots=True)
class Job:
    """Pairs of question and text that are answered together.

    Parameters
    ----------
    requests : sequence of ScanRequest
        At least one, checked by `Pipeline.request`.
    client : str
        Whose it is, for fairness.
    seconds : float
        Time from now to the answer.
    together : bool, default True
        Whether the texts are one collection.
    progress : callable, optional
        Called with (tokens done, tokens known so far) in the reading thread, if the job is read alone.
    """

    requests: Sequence[ScanRequest]
    client: str
    seconds: float
    together: bool = True
    progress: Progress | None = None
    future: Future[list[Scored]] = field(default_factory=Future)
    characters: int = field(init=False)
    _deadline: float = field(init=False)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # The question is matched with every text, so even an empty text costs something.
        self.characters = sum(len(request.query) + len(request.text) for request in self.requests)
        self._deadline = self.clock() + self.seconds

    def cancel(self) -> None:
        """Give the job up: its client is gone."""
        self._cancelled.set()

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return self.clock() > self._deadline

    @property
    def unwanted(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._cancelled.is_set() or self.late
