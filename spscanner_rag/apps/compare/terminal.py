"""Comparisons as text in a terminal, whose documents are never read as markup."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from rich.console import Console
from rich.progress import TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.compare.results import ComparedDocument, Pick, Retrieval
from spscanner_rag.apps.pages.terminal import (
    captured,
    line_of,
    open_console,
    print_sentence,
    progress_bars,
)
from spscanner_rag.files.documents import name_of

SHOWN = 400
"""The characters of a pick that are shown."""


def render_text(comparisons: Sequence[ComparedDocument], stream: TextIO) -> str:
    """Render comparisons as text, in the colours and width of ``stream``."""
    console = open_console(stream)
    with_picks = [comparison for comparison in comparisons if comparison.has_picks]
    if not with_picks:
        with_picks = list(comparisons)
    output = captured(console, with_picks, partial(_print_comparison, console))
    without_picks = len(comparisons) - len(with_picks)
    if without_picks:
        output += f"\nNo pick in {without_picks:,} of {len(comparisons):,} documents.\n"
    return output


def _print_comparison(console: Console, comparison: ComparedDocument) -> None:
    facts = (
        f"{len(comparison.text):,} characters, tokens as counted by"
        f" {comparison.counted_by}"
    )
    name = line_of(console, name_of(comparison.document.path), "bold")
    console.print(name, line_of(console, facts, "dim"), soft_wrap=True)
    console.print(_summary(console, comparison))
    for retrieval in comparison.retrievals:
        _print_picks(console, comparison, retrieval)
    for number in range(len(comparison.evidence_sentences)):
        _print_evidence_sentence(console, comparison, number)


def _summary(console: Console, comparison: ComparedDocument) -> Table:
    """Return a table with a row for each retriever."""
    with_only = len(comparison.retrievals) > 1
    with_evidence = bool(comparison.evidence_sentences)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("retriever")
    heads = ["picks", "of units"]
    if with_only:
        heads.append("only it")
    if with_evidence:
        heads.append("evidence")
    for head in [*heads, "tokens", "seconds"]:
        table.add_column(head, justify="right")

    for retrieval in comparison.retrievals:
        cells: list[str | Text] = [
            line_of(console, retrieval.name, "bold"),
            f"{len(retrieval.picks):,}",
            f"{retrieval.units:,}",
        ]
        if with_only:
            cells.append(f"{retrieval.only:,}")
        if with_evidence:
            cells.append(_evidence_cell(retrieval))
        table.add_row(*cells, f"{retrieval.tokens:,}", f"{retrieval.seconds:.3f}")
    return table


def _evidence_cell(retrieval: Retrieval) -> Text:
    total = len(retrieval.found)
    style = "green" if retrieval.n_found == total else "red"
    return Text(f"{retrieval.n_found} of {total}", style)


def _print_picks(
    console: Console, comparison: ComparedDocument, retrieval: Retrieval
) -> None:
    console.print()
    console.print(line_of(console, retrieval.name, "bold"), soft_wrap=True)
    for pick in retrieval.picks:
        where = line_of(console, comparison.document.where(pick.start), "cyan")
        if pick.only:
            where.append("  only", style="bold yellow")
        if comparison.touches_evidence(pick.start, pick.end):
            where.append("  evidence", style="bold green")
        console.print(where, soft_wrap=True)
        quote = _quote(comparison, pick)
        print_sentence(console, quote, (pick.rank, pick.score))


def _quote(comparison: ComparedDocument, pick: Pick) -> str:
    """Return the beginning of a pick, with its length if it is longer."""
    characters = pick.end - pick.start
    quote = comparison.text[pick.start : pick.start + min(characters, SHOWN)]
    if characters > SHOWN:
        quote += f" [{characters:,} characters]"
    return quote


def _print_evidence_sentence(
    console: Console, comparison: ComparedDocument, number: int
) -> None:
    """Print an evidence sentence, and who found and who missed it."""
    start, end = comparison.evidence_sentences[number]
    where = Text(f"\nevidence {comparison.document.where(start)}", style="cyan")
    finders: list[str] = []
    missers: list[str] = []
    for retrieval in comparison.retrievals:
        names = finders if retrieval.found[number] else missers
        names.append(retrieval.name)
    if finders:
        where.append("  ")
        where.append_text(line_of(console, f"found by {', '.join(finders)}", "green"))
    if missers:
        where.append("  ")
        where.append_text(line_of(console, f"missed by {', '.join(missers)}", "red"))
    console.print(where, soft_wrap=True)
    print_sentence(console, comparison.text[start : min(end, start + SHOWN)], None)


@contextmanager
def retriever_progress(
    visible: bool | None, turns: int, stream: TextIO | None = None
) -> Iterator[Callable[[str], None]]:
    """Show which retriever is running.

    Yields the ``started`` callback for `compare`.
    """
    with progress_bars(
        visible, TimeElapsedColumn(), transient=True, stream=stream
    ) as bars:
        task = bars.add_task("", total=turns)
        turns_begun = iter(range(turns))

        def started(name: str) -> None:
            label = line_of(bars.console, name).plain[-40:]
            completed = next(turns_begun)
            bars.update(task, description=label, completed=completed, refresh=True)

        yield started
