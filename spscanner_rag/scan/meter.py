"""Progress and cancellation of a scan, counted in tokens."""

from dataclasses import dataclass

from spscanner_rag.scorers import Cancelled, Progress, stop_if


@dataclass(slots=True)
class Meter:
    """Reports progress after every forward pass, and stops if the caller cancels.

    Examples
    --------
    >>> from spscanner_rag.scan.meter import Meter
    >>> meter = Meter(progress=print)
    >>> meter.expect(300)
    >>> meter.after_step(200)
    200 300
    """

    progress: Progress | None = None
    cancelled: Cancelled | None = None
    done: int = 0
    total: int = 0

    def after_step(self, tokens: int) -> None:
        """Count the tokens of a forward pass.

        Raise ``ScanCancelled`` if asked to.
        """
        self.done += tokens
        if self.progress is not None:
            self.progress(self.done, self.total)
        self.check()

    def expect(self, tokens: int) -> None:
        """Count tokens that will be read."""
        self.total += tokens

    def check(self) -> None:
        """Raise ``ScanCancelled`` if the caller wants to stop."""
        if self.cancelled is not None:
            stop_if(self.cancelled, f"after {self.done} of {self.total} tokens")
