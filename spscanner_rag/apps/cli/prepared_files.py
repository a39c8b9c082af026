"""Documents that are prepared once, and scanned for each question, with progress."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import Selection

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from spscanner_rag import Scanner
    from spscanner_rag.scan.prepared_document import PreparedDocument

MEASURED_SECONDS = 1.0  # seconds of reading, enough to know its speed
WORTH_A_LINE = 5.0  # seconds; shorter waits are not announced
SCANS_FASTER = 6  # times faster than the encoder reads


class PreparedFiles:
    """The documents of a command, prepared for its questions.

    Parameters
    ----------
    scanner : Scanner
    documents : sequence of TextFile
    progress : bool or None
        Whether progress is shown on standard error. None: as bars on a terminal, and
        elsewhere in a line now and then.
    """

    def __init__(
        self,
        scanner: "Scanner",
        documents: Sequence[TextFile],
        progress: bool | None,
    ) -> None:
        self.scanner = scanner
        self.documents = documents
        self._progress = progress
        self._characters = sum(len(document.text) for document in documents)
        self._is_announced = progress is False
        self._prepared = self._prepare()

    def _prepare(self) -> "list[PreparedDocument]":
        prepared_documents: list[PreparedDocument] = []
        n_documents = f"{len(self.documents):,}"
        before = 0
        with self._bar("preparing", "characters", self._characters) as show:
            for number, document in enumerate(self.documents, 1):
                size = len(document.text)
                report = partial(show, f"{number:,} of {n_documents}", before, size)
                prepared = self.scanner.prepare(document, progress=report)
                prepared_documents.append(prepared)
                before += size
        return prepared_documents

    def scanned(self, query: str, selection: Selection) -> list[ScannedDocument]:
        """Score the documents for a question, and select from all of them together."""
        pairs = [(query, prepared) for prepared in self._prepared]
        n_tokens = sum(prepared.n_tokens for prepared in self._prepared)
        with self._bar("scanning", "tokens", n_tokens) as show:
            report = partial(show, f"{len(pairs):,}", 0, n_tokens)
            results = self.scanner.scan_many(pairs, together=True, progress=report)
        self._is_announced = True
        return select_together(self.documents, results, selection)

    @contextmanager
    def _bar(self, doing: str, unit: str, total: int) -> Iterator[Callable[..., None]]:
        """Within the block, show one bar over all documents.

        The yielded function takes a label for the current documents, the size of those
        before them, their own size, and how far they are read: ``done`` of ``total``.
        """
        from rich.progress import TextColumn, TimeRemainingColumn

        from spscanner_rag.apps.pages.terminal import progress_bars

        columns = (TextColumn(unit), TimeRemainingColumn())
        visible = self._progress if total > 0 else False
        with progress_bars(visible, *columns, transient=True) as bars:
            bar = _Bar(bars, bars.add_task(doing, total=total), doing, total)
            yield partial(self._show, bar)

    def _show(
        self, bar: "_Bar", label: str, before: int, size: int, done: int, total: int
    ) -> None:
        seconds = bar.seconds_at(label, before + size * done // max(total, 1))
        if self._is_announced or seconds is None:
            return
        self._is_announced = True
        if bar.doing == "preparing":
            seconds += seconds / SCANS_FASTER
        if seconds >= WORTH_A_LINE:
            bar.bars.console.print(
                f"reading {self._characters:,} characters, about {seconds:.0f} s"
            )


@dataclass
class _Bar:
    bars: "Progress"
    task: "TaskID"
    doing: str
    total: int
    began: float | None = None
    done_at_first: int = 0

    def seconds_at(self, label: str, done: int) -> float | None:
        """Show how much is done, and return the expected seconds for all.

        None as long as they cannot be told.
        """
        now = monotonic()
        description = f"{self.doing} {label} documents"
        self.bars.update(self.task, description=description, completed=done)
        if self.began is None:  # the time before the first call includes loading
            self.began = now
            self.done_at_first = done
        seconds = now - self.began
        done_since = done - self.done_at_first
        if seconds < MEASURED_SECONDS or not done_since:
            return None
        return self.total * seconds / done_since
