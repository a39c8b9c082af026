"""What the terminal shows: selected sentences with their neighbours, and progress.

A document is never markup here: its control characters are written out, and rich's own markup, emoji and
highlighting are off.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from spscanner_rag.files.documents import STANDARD_INPUT
from spscanner_rag.results import Passage
from spscanner_rag.scorers import Progress
from spscanner_rag.views.escaping import one_line
from spscanner_rag.views.progress import open_console, progress_bars
from spscanner_rag.views.scanned_document import ScannedDocument


def encodable(text: str, encoding: str) -> str:
    """Write out the characters that ``encoding`` cannot hold, as Python escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def render_documents(documents: Sequence[ScannedDocument], context: int, stream: TextIO) -> str:
    """Return the text view of scanned documents, in the colours and width of ``stream``.

    Each selected sentence stands under its rank, score and position (line:column), marked ``>``, between
    its neighbours, which are dimmed. Only a terminal gets colours and wrapped lines.
    """
    console = open_console(stream)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with console.capture() as capture:
        for index, scanned in enumerate(documents):
            if index:
                console.print()
            _print_document(console, scanned, context, encoding)
    return capture.get()


def _print_document(console: Console, scanned: ScannedDocument, context: int, encoding: str) -> None:
    path, result = scanned.document.path, scanned.result
    name = "standard input" if path == STANDARD_INPUT else one_line(path)
    console.print(
        Text(encodable(name, encoding), style="bold"),
        Text(f"{len(result.text):,} characters, {len(result.logits):,} sentences", style="dim"),
        soft_wrap=True,
    )
    if not scanned.picks:
        best = f"the best score is {result.scores.max():.3f}" if len(result.scores) else "it has none"
        console.print(Text(f"No sentence was selected; {best}."))
    ranks = scanned.ranks
    chosen = {passage.start: passage for passage in scanned.passages}
    for passage in scanned.picks:
        line, column = scanned.document.position(passage.start)
        heading = Text(f"{ranks[passage.start]:>3}  ", style="bold")
        heading.append(f"{passage.score:.3f}", style="bold green")
        heading.append(f"  {line}:{column}", style="cyan")
        console.print()
        console.print(heading, soft_wrap=True)
        for number in _surroundings(scanned, passage, context, chosen):
            _print_sentence(console, scanned, number, passage, encoding)


def _surroundings(
    scanned: ScannedDocument, passage: Passage, context: int, chosen: dict[int, Passage]
) -> list[int]:
    """Numbers of the sentence and of the selected sentences that connect to it, up to ``context`` away."""
    number, starts = scanned.number(passage), scanned.result.starts
    first = last = number
    while first > max(0, number - context) and int(starts[first - 1]) in chosen:
        first -= 1
    while last < min(len(starts) - 1, number + context) and int(starts[last + 1]) in chosen:
        last += 1
    return list(range(first, last + 1))


def _print_sentence(
    console: Console, scanned: ScannedDocument, number: int, passage: Passage, encoding: str
) -> None:
    start, end = int(scanned.result.starts[number]), int(scanned.result.ends[number])
    text = encodable(one_line(scanned.document.text[start:end]), encoding)
    is_pick = start == passage.start
    marker = "   > " if is_pick else "     "
    if not console.is_terminal:  # for grep and files: a sentence a line
        console.print(Text(marker + text), soft_wrap=True)
        return
    hanging = Table.grid()
    hanging.add_column(width=len(marker))
    hanging.add_column(overflow="fold")
    hanging.add_row(Text(marker, style="bold green"), Text(text, style="" if is_pick else "dim"))
    console.print(hanging)


@contextmanager
def scan_progress(enabled: bool, stream: TextIO) -> Iterator[Callable[[str], Progress | None]]:
    """Show a bar of tokens for each document that is scanned inside the ``with`` block.

    Yields a function that takes a document's path and returns the callback for ``Scanner.scan``, or None
    when progress is not ``enabled``.
    """
    if not enabled:
        yield lambda path: None
        return
    console = open_console(stream)
    columns = TextColumn("tokens"), TimeRemainingColumn()
    with progress_bars(console, *columns, transient=console.is_terminal) as progress:

        def start(path: str) -> Progress:
            name = encodable(one_line(path), getattr(stream, "encoding", None) or "utf-8")
            task = progress.add_task(name[-40:], total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        yield start


def print_facts(title: str, facts: Sequence[tuple[str, str]], stream: TextIO) -> None:
    """Print names and values, one a line, under a title."""
    console = open_console(stream)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    width = max(len(one_line(name)) for name, _ in facts) + 2
    with console.capture() as capture:
        console.print(Text(title, style="bold"), soft_wrap=True)
        for name, value in facts:
            line = Text(f"  {encodable(one_line(name), encoding):<{width}}", style="cyan")
            line.append(encodable(one_line(value), encoding), style="default")
            console.print(line, soft_wrap=True)
    stream.write(capture.get())
