"""The comparison in a terminal: a table with a column for each retriever; documents are never read as markup."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.compare.retrievals import Retrieval, Retrievals
from spscanner_rag.apps.pages.terminal import captured, line_of, open_console, progress_bars
from spscanner_rag.files.documents import name_of

LONGEST = 400  # characters shown of a pick
COLUMN = 48  # characters, if the output is not a terminal


def render_text(comparisons: Sequence[Retrievals], stream: TextIO) -> str:
    """The text view, in the colours and width of ``stream``."""
    console = open_console(stream)
    if not console.is_terminal:
        console.width = 8 + COLUMN * max(2, len(comparisons[0].retrievals))
    found = [each for each in comparisons if any(retrieval.picks for retrieval in each.retrievals)]
    found = found or list(comparisons)
    shown = captured(console, found, lambda comparison: _View(console, comparison).show())
    if len(found) < len(comparisons):
        left = len(comparisons) - len(found)
        shown += f"\nNo pick in {left:,} of {len(comparisons):,} documents.\n"
    return shown


class _View:
    def __init__(self, console: Console, comparison: Retrievals) -> None:
        self.console, self.comparison = console, comparison
        # Whether ranks count the picks in other documents too.
        picks = [enumerate(retrieval.picks, start=1) for retrieval in comparison.retrievals]
        self.among_others = any(pick.rank != place for own in picks for place, pick in own)

    def show(self) -> None:
        comparison = self.comparison
        facts = f"{len(comparison.text):,} characters, tokens as counted by {comparison.counted_by}"
        name = self.text(name_of(comparison.document.path), "bold")
        self.console.print(name, self.text(facts, "dim"), soft_wrap=True)
        self.console.print(self.summary())
        self.console.print(self.picks())
        for number, (start, end) in enumerate(comparison.evidence_sentences):
            self.console.print(self.evidence(number, start, end), soft_wrap=not self.console.is_terminal)

    def text(self, content: str, style: str = "") -> Text:
        return line_of(self.console, content, style)

    def summary(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        several, known = len(self.comparison.retrievals) > 1, bool(self.comparison.evidence_sentences)
        table.add_column("retriever")
        for head in ["picks", "of units", *["only it"] * several, *["evidence"] * known, "tokens", "seconds"]:
            table.add_column(head, justify="right")
        for retrieval in self.comparison.retrievals:
            found, total = sum(retrieval.found), len(retrieval.found)
            table.add_row(
                self.text(retrieval.name, "bold"),
                f"{len(retrieval.picks):,}",
                f"{retrieval.units:,}",
                *[f"{retrieval.only:,}"] * several,
                *[Text(f"{found} of {total}", "green" if found == total else "red")] * known,
                f"{retrieval.tokens:,}",
                f"{retrieval.seconds:.3f}",
            )
        return table

    def picks(self) -> Table:
        table = Table(show_lines=True, expand=True)
        table.add_column("", justify="right")
        for retrieval in self.comparison.retrievals:
            table.add_column(self.text(retrieval.name), overflow="fold", ratio=1)
        for rank in range(max(len(retrieval.picks) for retrieval in self.comparison.retrievals)):
            table.add_row(
                "" if self.among_others else str(rank + 1),
                *(self.pick(each, rank) for each in self.comparison.retrievals),
            )
        return table

    def pick(self, retrieval: Retrieval, rank: int) -> Text:
        if rank >= len(retrieval.picks):
            return Text("")
        pick = retrieval.picks[rank]
        cell = Text(f"{pick.rank}  " if self.among_others else "", style="bold")
        cell.append(f"{pick.score:.3f}", style="bold green")
        place = self.comparison.document.where(pick.start)
        cell.append("  ").append(self.text(place).plain, style="not bold cyan")
        if pick.only:
            cell.append("  only", style="bold yellow")
        if self.comparison.touches_evidence(pick.start, pick.end):
            cell.append("  evidence", style="bold green")
        shown = self.comparison.text[pick.start : min(pick.end, pick.start + LONGEST)]
        more = f" [{pick.end - pick.start:,} characters]" if pick.end > pick.start + LONGEST else ""
        cell.append("\n").append(self.text(shown).plain + more, style="not bold default")
        return cell

    def evidence(self, number: int, start: int, end: int) -> Text:
        line, column = self.comparison.document.position(start)
        shown = Text(f"evidence {line}:{column}", style="cyan")
        for is_found, verb, style in ((True, "found", "green"), (False, "missed", "red")):
            names = [each.name for each in self.comparison.retrievals if each.found[number] == is_found]
            if names:
                shown.append("  ").append_text(self.text(f"{verb} by {', '.join(names)}", style))
        sentence = self.comparison.text[start : min(end, start + LONGEST)]
        return shown.append("\n  ").append_text(self.text(sentence, "default"))


@contextmanager
def retriever_progress(
    visible: bool, turns: int, stream: TextIO | None = None
) -> Iterator[Callable[[str], None]]:
    """Show which retriever is running; yields the ``started`` callback of `compare`."""
    with progress_bars(visible, TimeElapsedColumn(), transient=True, stream=stream) as bars:
        task, begun = bars.add_task("", total=turns), iter(range(turns))

        def started(name: str) -> None:
            shown = line_of(bars.console, name).plain[-40:]
            bars.update(task, description=shown, completed=next(begun), refresh=True)

        yield started
