"""Terminal output: selected sentences with their neighbours, facts, and progress.

A document's text is never read as markup: its control characters are escaped, and
rich's markup, emoji and highlighting are off.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from threading import Event, Thread
from time import monotonic
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.pages.scanned_document import (
    NOT_CLEAR,
    ScannedDocument,
    compression_of,
    is_unclear,
)
from spscanner_rag.files.documents import name_of
from spscanner_rag.results.neighbours import runs_of
from spscanner_rag.scorers import Progress as TokensRead
from spscanner_rag.text.escaping import encodable, one_line

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 10.0  # of progress in a file or a pipe


def open_console(stream: TextIO) -> Console:
    """Return a console on ``stream`` that prints every string literally."""
    return Console(file=stream, markup=False, highlight=False, emoji=False)


def progress_bars(
    visible: bool | None,
    *further: ProgressColumn,
    transient: bool = False,
    stream: TextIO | None = None,
) -> Progress:
    """Bars with a description and the number done.

    They have ``further`` columns (default: the remaining time).

    They are shown on standard error, which clears them at the end if they are
    ``transient`` and it is a terminal. By default (None), a file or a pipe gets a plain
    line now and then instead, so that a long run is not silent.
    """
    console = open_console(stream or sys.stderr)
    name = TextColumn("{task.description}", markup=False)
    columns = (
        name,
        BarColumn(),
        MofNCompleteColumn(),
        *(further or (TimeRemainingColumn(),)),
    )
    at_terminal = console.is_terminal
    shown = at_terminal if visible is None else visible
    kind = Progress
    if visible is None and not at_terminal:
        kind = _ProgressInLines
    return kind(
        *columns,
        console=console,
        disable=not shown,
        transient=transient and at_terminal,
    )


class _ProgressInLines(Progress):
    """Bars that are not shown: a line says how far the work is, every ten seconds.

    A thread writes it, since a single step of the work may take minutes.
    """

    _began = 0.0
    _told_at: float | None = None
    _latest: TaskID | None = None
    _last_line = ""
    _ended: Event | None = None

    def start(self) -> None:
        """Start the thread."""
        super().start()
        self._ended = Event()
        Thread(target=self._watch, args=[self._ended], daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        if self._ended is not None:
            self._ended.set()
        super().stop()

    def add_task(self, *arguments: Any, **fields: Any) -> TaskID:  # noqa: ANN401
        """Add a bar.

        The first one starts the clock.
        """
        if self._told_at is None:
            self._began = self._told_at = monotonic()
        self._latest = super().add_task(*arguments, **fields)
        return self._latest

    def update(self, task_id: TaskID, *arguments: Any, **fields: Any) -> None:  # noqa: ANN401
        """Update a bar, and write a line if the last one is old."""
        super().update(task_id, *arguments, **fields)
        self._latest = task_id
        self._tell()

    def _watch(self, ended: Event) -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES / 20):
            self._tell()

    def _tell(self) -> None:
        """Write how far the latest bar is, if the last line is old."""
        with self._lock:
            now = monotonic()
            if self._told_at is None or now - self._told_at < SECONDS_BETWEEN_LINES:
                return
            self._told_at = now
            task = next(task for task in self.tasks if task.id == self._latest)
            line = f"{task.description}: {task.completed:,.0f}"
            if task.total is not None:
                line += f" of {task.total:,.0f}"
            told = line
            if line == self._last_line:
                told += f", after {now - self._began:.0f} s"
            self._last_line = line
            self.console.print(line_of(self.console, told), soft_wrap=True)


def new_bar(bars: Progress, description: str) -> Callable[..., None]:
    """Add a bar, and return the function that updates it.

    It takes the number done and, if known, the total.
    """
    bar = bars.add_task(one_line(description), total=None)
    return lambda done, total=None: bars.update(bar, completed=done, total=total)


def line_of(console: Console, content: str, style: str = "") -> Text:
    """Text on one line, with escapes for characters that cannot be shown.

    These are invisible, or the output cannot represent them.
    """
    return Text(encodable(one_line(content), console.encoding), style=style)


def captured(
    console: Console, documents: Iterable[T], show: Callable[[T], None]
) -> str:
    """Return the output of ``show`` for all documents.

    There is an empty line between them.
    """
    with console.capture() as capture:
        for number, document in enumerate(documents):
            if number:
                console.print()
            show(document)
    return capture.get()


def render_documents(documents: Sequence[ScannedDocument], stream: TextIO) -> str:
    """Render scanned documents as text.

    It has the colours and the width of ``stream`` if it is a terminal.

    Documents without a selected sentence are only counted, unless there are no others.
    """
    console = open_console(stream)
    with_picks = [scanned for scanned in documents if scanned.picks] or documents
    shown = captured(console, with_picks, partial(_print_document, console))
    if is_unclear(documents):
        shown = f"{NOT_CLEAR}\n\n{shown}"
    without_picks = len(documents) - len(with_picks)
    if without_picks:
        shown += (
            f"\nNo sentence was selected in {without_picks:,} of {len(documents):,}"
            " documents.\n"
        )
    counted = compression_of(documents)
    if counted is None:
        return shown
    with console.capture() as last_line:
        console.print()
        console.print(Text(str(counted), style="dim"), soft_wrap=True)
    return shown + last_line.get()


def _print_document(console: Console, scanned: ScannedDocument) -> None:
    result = scanned.result
    ranks = scanned.ranks
    size = f"{len(result.text):,} characters, {len(result.logits):,} sentences"
    name = line_of(console, name_of(scanned.document.path), "bold")
    console.print(name, Text(size, style="dim"), soft_wrap=True)
    if not scanned.picks:
        highest = "it has none"
        if len(result.scores):
            highest = f"the best score is {result.scores.max():.3f}"
        console.print(Text(f"No sentence was selected; {highest}."))
    if scanned.merged:
        _print_merged(console, scanned)
        return
    for best, first, last in _stretches(scanned):
        console.print()
        place = scanned.document.where(int(result.starts[best]))
        console.print(line_of(console, place, "cyan"), soft_wrap=True)
        for number in range(first, last + 1):
            start = int(result.starts[number])
            end = int(result.ends[number])
            facts = None
            if start in ranks:
                facts = (ranks[start], float(result.scores[number]))
            print_sentence(console, scanned.document.shown(start, end), facts)


def _print_merged(console: Console, scanned: ScannedDocument) -> None:
    for passage in scanned.picks:
        console.print()
        place = scanned.document.where(passage.start)
        console.print(line_of(console, place, "cyan"), soft_wrap=True)
        facts = (scanned.ranks[passage.start], passage.score)
        print_sentence(console, passage.text, facts)


def _stretches(scanned: ScannedDocument) -> list[tuple[int, int, int]]:
    """The runs of passages that have a pick, in the order of the picks.

    Each is its first pick, its first and its last sentence.
    """
    chosen = sorted(map(scanned.number, scanned.passages))
    run_of_sentence: dict[int, tuple[int, int]] = {}
    for first, last in runs_of(chosen):
        for number in range(first, last + 1):
            run_of_sentence[number] = (first, last)
    ordered: dict[tuple[int, int], int] = {}
    for number in map(scanned.number, scanned.picks):
        ordered.setdefault(run_of_sentence[number], number)
    return [(pick, *run) for run, pick in ordered.items()]


def print_sentence(
    console: Console, sentence: str, pick: tuple[int, float] | None
) -> None:
    """Print a sentence after its rank and score, or a neighbour without them."""
    if pick is None:
        marker = Text(" " * 12)
        text = line_of(console, sentence, "dim")
    else:
        rank, score = pick
        marker = Text(f"{rank:>3}  {score:.3f}  ", style="bold green")
        text = line_of(console, sentence)
    if not console.is_terminal:  # one sentence per line, for grep and files
        console.print(marker + text, soft_wrap=True)
        return
    hanging = Table.grid()
    hanging.add_column(width=len(marker))
    hanging.add_column(overflow="fold")
    hanging.add_row(marker, text)
    console.print(hanging)


@contextmanager
def page_progress(
    visible: bool | None, stream: TextIO | None = None
) -> Iterator[Callable[[str], TokensRead]]:
    """Within the block, show page bars.

    Yields a function from a document's path to its ``progress``.
    """
    columns = TextColumn("pages"), TimeRemainingColumn()
    with progress_bars(visible, *columns, transient=True, stream=stream) as bars:

        def start(path: str) -> TokensRead:
            name = line_of(bars.console, path).plain[-40:]
            bar = cache(lambda: new_bar(bars, name))  # made at the first report
            return lambda done, total: bar()(done, total)

        yield start


def print_facts(title: str, facts: Sequence[tuple[str, str]], stream: TextIO) -> None:
    """Print a title, and below it a line for each name and value."""
    console = open_console(stream)
    width = max(len(one_line(name)) for name, _ in facts) + 2
    with console.capture() as capture:
        console.print(Text(title, style="bold"), soft_wrap=True)
        for name, value in facts:
            line = Text(f"  {line_of(console, name).plain:<{width}}", style="cyan")
            console.print(
                line.append_text(line_of(console, value, "default")), soft_wrap=True
            )
    stream.write(capture.get())
