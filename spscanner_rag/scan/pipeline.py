"""From questions on texts to logits: texts are cut and tokenized ahead of the model and read together."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence, read_logits
from spscanner_rag.scan.prefetch import one_ahead
from spscanner_rag.scan.prepare import PreparedText, QueryOnText, Reading
from spscanner_rag.scorers import Cancelled, Progress, ScanCancelled
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import average_logits, window_ranges

T = TypeVar("T")

TOKENS_AHEAD = 16
"""Texts are prepared until they fill so many forward passes, then read together."""

TOKENS_AHEAD_IN_THREAD = 4
"""As `TOKENS_AHEAD` where texts are prepared in a thread: enough of them for few forward passes that are not full,
few enough that reading starts early and has something to run beside."""

SERIAL_DEVICES = {"cpu"}
"""Kinds of devices on which texts are not prepared in a thread, because the model takes all cores itself."""


class Request(NamedTuple):
    """A question on a text; ``units`` if the text is not to be cut by the checkpoint's segmenter."""

    query: str
    text: str
    units: Sequence[Unit] | None = None


class Scored(NamedTuple):
    """The units of a request's text, and the logit of each: (units,)."""

    request: Request
    cut: PreparedText
    logits: NDArray[np.float32]


@dataclass(slots=True)
class Meter:
    """Counts tokens for the caller's progress, and asks whether to go on.

    Parameters
    ----------
    progress : callable, optional
        Called with (tokens done, tokens in all prepared so far) after every forward pass.
    cancelled : callable, optional
        Asked before every text is prepared (on an accelerator in a thread of its own) and after every forward
        pass.
    """

    progress: Progress | None = None
    cancelled: Cancelled | None = None
    done: int = 0
    total: int = 0

    def expect(self, tokens: int) -> None:
        """So many more tokens will be read."""
        self.total += tokens

    def after_step(self, tokens: int) -> None:
        """So many tokens have been read. Raises ``ScanCancelled``."""
        self.done += tokens
        if self.progress is not None:
            self.progress(self.done, self.total)
        self.check()

    def check(self) -> None:
        """Raise ``ScanCancelled`` if the caller wants to stop."""
        if self.cancelled is not None and self.cancelled():
            raise ScanCancelled(f"cancelled after {self.done} of {self.total} tokens")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Reads requests with one model.

    Parameters
    ----------
    model : ScannerModel
    reading : Reading
        How the checkpoint reads a text.
    window_tokens : int or None
        Texts that are longer are read in half-overlapping windows of this many tokens.
    segment_tokens : int
        Tokens per forward pass.
    """

    model: ScannerModel
    reading: Reading
    window_tokens: int | None
    segment_tokens: int

    def run(self, requests: Iterable[Request], meter: Meter) -> Iterator[Scored]:
        """Logits of every request, in order. Consecutive requests on one text prepare it once."""
        with closing(self._runs(self._prepared(requests, meter))) as runs:
            for scans in runs:
                for scan, logits in zip(scans, self._logits(scans, meter), strict=True):
                    yield Scored(scan.request, scan.cut, logits)

    def _runs(self, prepared: Iterator["_Scan"]) -> Generator[list["_Scan"], None, None]:
        """What is read together; beside an accelerator, the next run is prepared while one is read."""
        in_thread = self.model.device.type not in SERIAL_DEVICES
        runs = in_runs(
            prepared,
            lambda scan: len(scan.cut.tokens.input_ids),
            self.segment_tokens,
            TOKENS_AHEAD_IN_THREAD if in_thread else None,
        )
        return one_ahead(runs) if in_thread else runs

    def _prepared(self, requests: Iterable[Request], meter: Meter) -> Iterator["_Scan"]:
        cut, cut_for = None, None
        for request in requests:
            meter.check()
            if cut is None or cut_for is None or not _same_text(request, cut_for):
                cut, cut_for = self.reading.prepare(request.text, request.units), request
            laid = self.reading.lay(request.query, cut)
            yield _Scan(request, cut, laid, self._windows(cut))

    def _windows(self, cut: PreparedText) -> list[tuple[int, int]]:
        if not cut.units:
            return []
        if self.window_tokens is None or self.window_tokens >= len(cut.tokens.input_ids):
            return [(0, len(cut.units) - 1)]
        return window_ranges(cut.tokens.unit_ends, self.window_tokens)

    def _logits(self, scans: list["_Scan"], meter: Meter) -> Iterator[NDArray[np.float32]]:
        sequences: list[TokenSequence] = [
            self.reading.sequence(scan.laid, scan.cut, first, last)
            for scan in scans
            for first, last in scan.windows
        ]
        meter.expect(sum(len(sequence.input_ids) for sequence in sequences))
        read = iter(read_logits(self.model, sequences, self.segment_tokens, meter.after_step))
        for scan in scans:
            logits = [next(read) for _ in scan.windows]
            yield average_logits(scan.windows, logits, len(scan.cut.units))


class _Scan(NamedTuple):
    """A request, ready to be read."""

    request: Request
    cut: PreparedText
    laid: QueryOnText
    windows: list[tuple[int, int]]  # first and last unit of each, inclusive


def in_runs(
    items: Iterable[T], tokens_of: Callable[[T], int], segment_tokens: int, passes: int | None = None
) -> Generator[list[T], None, None]:
    """Items in runs that fill several forward passes, so that similar lengths can be read together.

    ``passes`` is how many; None: `TOKENS_AHEAD`.
    """
    run: list[T] = []
    tokens, enough = 0, (TOKENS_AHEAD if passes is None else passes) * segment_tokens
    for item in items:
        run.append(item)
        tokens += tokens_of(item)
        if tokens >= enough:
            yield run
            run, tokens = [], 0
    if run:
        yield run


def _same_text(request: Request, other: Request) -> bool:
    return request.text is other.text and request.units is other.units
