"""Terminal output: selected sentences with their neighbours, facts, and progress.

Text of a document is never read as markup: its control characters are escaped, and rich's own markup, emoji and
highlighting are off.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.pages.scanned_document import NOT_CLEAR, ScannedDocument, compression_of, is_unclear
from spscanner_rag.files.documents import name_of
from spscanner_rag.results import Passage
from spscanner_rag.scorers import Progress as TokensRead
from spscanner_rag.text.escaping import encodable, one_line

T = TypeVar("T")


def open_console(stream: TextIO) -> Console:
    """A console on ``stream`` that prints every string literally."""
    return Console(file=stream, markup=False, highlight=False, emoji=False)


def progress_bars(console: Console, *further: ProgressColumn, **options: Any) -> Progress:  # noqa: ANN401 - of Progress
    """Bars with description, number done, and ``further`` columns; default: the time that remains."""
    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), MofNCompleteColumn(), *(further or (TimeRemainingColumn(),)))
    return Progress(*columns, console=console, **options)


def line_of(console: Console, content: str, style: str = "") -> Text:
    """Text on one line, with invisible characters and those that the output cannot represent as escapes."""
    return Text(encodable(one_line(content), console.encoding), style=style)


def captured(console: Console, documents: Iterable[T], show: Callable[[T], None]) -> str:
    """The output of ``show`` for all documents, with an empty line between them."""
    with console.capture() as capture:
        for number, document in enumerate(documents):
            if number:
                console.print()
            show(document)
    return capture.get()


def render_documents(documents: Sequence[ScannedDocument], context: int, stream: TextIO) -> str:
    """The text view of scanned documents, in the colours and width of ``stream``; only terminals get them.

    Documents without a selected sentence are only counted, if there are others.
    """
    console = open_console(stream)
    found = [scanned for scanned in documents if scanned.picks] or documents
    shown = captured(console, found, lambda scanned: _print_document(console, scanned, context))
    if is_unclear(documents):
        shown = f"{NOT_CLEAR}\n\n{shown}"
    if len(found) < len(documents):
        left = len(documents) - len(found)
        shown += f"\nNo sentence was selected in {left:,} of {len(documents):,} documents.\n"
    counted = compression_of(documents)
    if counted is None:
        return shown
    with console.capture() as last_line:
        console.print()
        console.print(Text(str(counted), style="dim"), soft_wrap=True)
    return shown + last_line.get()


def _print_document(console: Console, scanned: ScannedDocument, context: int) -> None:
    result, ranks = scanned.result, scanned.ranks
    facts = f"{len(result.text):,} characters, {len(result.logits):,} sentences"
    name = line_of(console, name_of(scanned.document.path), "bold")
    console.print(name, Text(facts, style="dim"), soft_wrap=True)
    if not scanned.picks:
        best = f"the best score is {result.scores.max():.3f}" if len(result.scores) else "it has none"
        console.print(Text(f"No sentence was selected; {best}."))
    chosen = {passage.start for passage in scanned.passages}
    for passage in scanned.picks:
        line, column = scanned.document.position(passage.start)
        heading = Text(f"{ranks[passage.start]:>3}  ", style="bold")
        heading.append(f"{passage.score:.3f}", style="bold green")
        heading.append(f"  {line}:{column}", style="cyan")
        if section := scanned.document.section(passage.start):
            heading.append("  ").append_text(line_of(console, section, "cyan"))
        console.print()
        console.print(heading, soft_wrap=True)
        for number in _surroundings(scanned, passage, context, chosen):
            start, end = int(result.starts[number]), int(result.ends[number])
            _print_sentence(console, scanned.document.text[start:end], start == passage.start)


def _surroundings(scanned: ScannedDocument, passage: Passage, context: int, chosen: set[int]) -> range:
    """Numbers of the sentence and of the selected sentences that connect to it, up to ``context`` away."""
    number, starts = scanned.number(passage), scanned.result.starts
    first = last = number
    while first > max(0, number - context) and int(starts[first - 1]) in chosen:
        first -= 1
    while last < min(len(starts) - 1, number + context) and int(starts[last + 1]) in chosen:
        last += 1
    return range(first, last + 1)


def _print_sentence(console: Console, sentence: str, is_pick: bool) -> None:
    marker = Text("   > " if is_pick else "     ", style="bold green")
    text = line_of(console, sentence, "" if is_pick else "dim")
    if not console.is_terminal:  # one sentence on each line, for grep and files
        console.print(marker + text, soft_wrap=True)
        return
    hanging = Table.grid()
    hanging.add_column(width=len(marker))
    hanging.add_column(overflow="fold")
    hanging.add_row(marker, text)
    console.print(hanging)


@contextmanager
def scan_progress(enabled: bool, stream: TextIO) -> Iterator[Callable[[str], TokensRead | None]]:
    """Within the block, a bar of tokens for each document: from its path to `Scanner.scan`'s ``progress``."""
    if not enabled:
        yield lambda path: None
        return
    console = open_console(stream)
    columns = TextColumn("tokens"), TimeRemainingColumn()
    with progress_bars(console, *columns, transient=console.is_terminal) as progress:

        def start(path: str) -> TokensRead:
            task = progress.add_task(line_of(console, path).plain[-40:], total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield start


def print_facts(title: str, facts: Sequence[tuple[str, str]], stream: TextIO) -> None:
    """Print a title, and under it a line for each name and value."""
    console = open_console(stream)
    width = max(len(one_line(name)) for name, _ in facts) + 2
    with console.capture() as capture:
        console.print(Text(title, style="bold"), soft_wrap=True)
        for name, value in facts:
            line = Text(f"  {line_of(console, name).plain:<{width}}", style="cyan")
            console.print(line.append_text(line_of(console, value, "default")), soft_wrap=True)
    stream.write(capture.get())
