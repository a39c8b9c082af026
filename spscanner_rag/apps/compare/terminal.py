"""The comparison in a terminal: facts, then a list for each retriever; documents are never read as markup."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from rich.console import Console
from rich.progress import TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.compare.retrievals import Retrieval, Retrievals
from spscanner_rag.apps.pages.terminal import captured, line_of, open_console, print_sentence, progress_bars
from spscanner_rag.files.documents import name_of

LONGEST = 400  # characters shown of a pick


def render_text(comparisons: Sequence[Retrievals], stream: TextIO) -> str:
    """The text view, in the colours and width of ``stream``."""
    console = open_console(stream)
    found = [each for each in comparisons if any(retrieval.picks for retrieval in each.retrievals)]
    found = found or list(comparisons)
    shown = captured(console, found, partial(_print_comparison, console))
    if len(found) < len(comparisons):
        left = len(comparisons) - len(found)
        shown += f"\nNo pick in {left:,} of {len(comparisons):,} documents.\n"
    return shown


def _print_comparison(console: Console, comparison: Retrievals) -> None:
    facts = f"{len(comparison.text):,} characters, tokens as counted by {comparison.counted_by}"
    name = line_of(console, name_of(comparison.document.path), "bold")
    console.print(name, line_of(console, facts, "dim"), soft_wrap=True)
    console.print(_summary(console, comparison))
    for retrieval in comparison.retrievals:
        _print_picks(console, comparison, retrieval)
    for number, (start, end) in enumerate(comparison.evidence_sentences):
        where = Text(f"\nevidence {comparison.document.where(start)}", style="cyan")
        for is_found, verb, style in ((True, "found", "green"), (False, "missed", "red")):
            names = [each.name for each in comparison.retrievals if each.found[number] == is_found]
            if names:
                where.append("  ").append_text(line_of(console, f"{verb} by {', '.join(names)}", style))
        console.print(where, soft_wrap=True)
        print_sentence(console, comparison.text[start : min(end, start + LONGEST)], None)


def _summary(console: Console, comparison: Retrievals) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    several, known = len(comparison.retrievals) > 1, bool(comparison.evidence_sentences)
    table.add_column("retriever")
    for head in ["picks", "of units", *["only it"] * several, *["evidence"] * known, "tokens", "seconds"]:
        table.add_column(head, justify="right")
    for retrieval in comparison.retrievals:
        found, total = sum(retrieval.found), len(retrieval.found)
        table.add_row(
            line_of(console, retrieval.name, "bold"),
            f"{len(retrieval.picks):,}",
            f"{retrieval.units:,}",
            *[f"{retrieval.only:,}"] * several,
            *[Text(f"{found} of {total}", "green" if found == total else "red")] * known,
            f"{retrieval.tokens:,}",
            f"{retrieval.seconds:.3f}",
        )
    return table


def _print_picks(console: Console, comparison: Retrievals, retrieval: Retrieval) -> None:
    console.print()
    console.print(line_of(console, retrieval.name, "bold"), soft_wrap=True)
    for pick in retrieval.picks:
        where = line_of(console, comparison.document.where(pick.start), "cyan")
        if pick.only:
            where.append("  only", style="bold yellow")
        if comparison.touches_evidence(pick.start, pick.end):
            where.append("  evidence", style="bold green")
        console.print(where, soft_wrap=True)
        more = f" [{pick.end - pick.start:,} characters]" if pick.end > pick.start + LONGEST else ""
        shown = comparison.text[pick.start : min(pick.end, pick.start + LONGEST)] + more
        print_sentence(console, shown, (pick.rank, pick.score))


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
