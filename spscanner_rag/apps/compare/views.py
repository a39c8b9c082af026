"""A `Comparison`, and its views in a terminal and as one HTML page.

Documents are never read as markup.

The page shows the best picks of each retriever, then what only one retriever found,
then all picks.
"""

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TextIO

from rich.console import Console
from rich.progress import TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spscanner_rag.apps.pages.html_page import (
    listed,
    readable,
    render,
    short_labels,
    short_names,
)
from spscanner_rag.apps.pages.terminal import (
    captured,
    line_of,
    open_console,
    print_sentence,
    progress_bars,
)
from spscanner_rag.files.documents import TextFile, name_of

SHOWN = 400  # characters of a pick in a terminal

STRIP_WIDTH, STRIP_HEIGHT, EVIDENCE_HEIGHT = 1000, 20, 5
THINNEST, REACH = (
    5,
    20,
)  # minimum widths of a tick and of its clickable area, in the strip's units

BEST = 3  # picks of each retriever at the top of the page
MOST_ONLY = 10  # picks of each retriever that no other found
QUOTE, LONG_QUOTE, LONGEST = (
    240,
    600,
    2_000,
)  # characters of a pick: in a list, among the best, and at most
CONTEXT = 160  # characters on each side of a pick

_THE_ONE = "the evidence sentence"


@dataclass(frozen=True, slots=True)
class Pick:
    """One unit that a retriever picked.

    It has a span of characters, and the unit's own number of tokens.

    ``score``, from 0 to 1, cannot be compared between retrievers. ``rank`` 1 is the
    retriever's best in all documents compared together. ``only``: no other retriever's
    pick overlaps it by half of the shorter of the two.
    """

    start: int
    end: int
    score: float
    rank: int
    tokens: int
    only: bool


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The result of one retriever.

    It has the number of ``units`` it cut, and its ``picks``, best first.

    ``seconds`` is the time to cut and score the document, without loading a model;
    ``seconds_again`` is the time of another question, which is shorter for a retriever
    that keeps what it computed for the text. ``found`` has, for each evidence sentence,
    whether at least half of it lies inside the picks.
    """

    name: str
    units: int
    picks: tuple[Pick, ...]
    seconds: float
    found: tuple[bool, ...]
    seconds_again: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of all picks together."""
        return sum(pick.tokens for pick in self.picks)

    @property
    def only(self) -> int:
        """Number of picks that no other retriever found."""
        return sum(pick.only for pick in self.picks)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The picks of several retrievers for one question about one document.

    They are in the order given.

    ``evidence`` has ascending, disjoint spans of characters that answer the question,
    ``evidence_sentences`` the spans of the sentences that overlap it. ``counted_by``
    names the token counter. The document's path is empty for a text without a file. A
    notebook shows the page.
    """

    query: str
    document: TextFile
    retrievals: tuple[Retrieval, ...]
    evidence: tuple[tuple[int, int], ...]
    evidence_sentences: tuple[tuple[int, int], ...]
    counted_by: str

    @property
    def text(self) -> str:
        """The text of the document."""
        return self.document.text

    def touches_evidence(self, start: int, end: int) -> bool:
        """True if a span overlaps the evidence."""
        return any(first < end and last > start for first, last in self.evidence)

    def __repr__(self) -> str:
        names = ", ".join(retrieval.name for retrieval in self.retrievals)
        return (
            f"Comparison({self.query!r:.60}, characters={len(self.text)}, retrievers:"
            f" {names})"
        )

    @cached_property
    def page(self) -> str:
        """The comparison as one self-contained HTML page."""
        return render_comparisons([self])

    def _repr_html_(self) -> str:
        # the frame cannot access the page around it
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts"'
            ' title="Comparison of retrievers" width="100%" height="760"'
            ' style="border: 1px solid #8886; border-radius: 8px"></iframe>'
        )


def render_text(comparisons: Sequence[Comparison], stream: TextIO) -> str:
    """Render comparisons as text, in the colours and width of ``stream``."""
    console = open_console(stream)
    found = [
        each
        for each in comparisons
        if any(retrieval.picks for retrieval in each.retrievals)
    ]
    found = found or list(comparisons)
    shown = captured(console, found, partial(_print_comparison, console))
    if len(found) < len(comparisons):
        left = len(comparisons) - len(found)
        shown += f"\nNo pick in {left:,} of {len(comparisons):,} documents.\n"
    return shown


def _print_comparison(console: Console, comparison: Comparison) -> None:
    facts = (
        f"{len(comparison.text):,} characters, tokens as counted by"
        f" {comparison.counted_by}"
    )
    name = line_of(console, name_of(comparison.document.path), "bold")
    console.print(name, line_of(console, facts, "dim"), soft_wrap=True)
    console.print(_summary(console, comparison))
    for retrieval in comparison.retrievals:
        _print_picks(console, comparison, retrieval)
    for number, (start, end) in enumerate(comparison.evidence_sentences):
        where = Text(f"\nevidence {comparison.document.where(start)}", style="cyan")
        for is_found, verb, style in (
            (True, "found", "green"),
            (False, "missed", "red"),
        ):
            names = [
                each.name
                for each in comparison.retrievals
                if each.found[number] == is_found
            ]
            if names:
                where.append("  ").append_text(
                    line_of(console, f"{verb} by {', '.join(names)}", style)
                )
        console.print(where, soft_wrap=True)
        print_sentence(console, comparison.text[start : min(end, start + SHOWN)], None)


def _summary(console: Console, comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    several, known = len(comparison.retrievals) > 1, bool(comparison.evidence_sentences)
    table.add_column("retriever")
    for head in [
        "picks",
        "of units",
        *["only it"] * several,
        *["evidence"] * known,
        "tokens",
        "seconds",
    ]:
        table.add_column(head, justify="right")
    for retrieval in comparison.retrievals:
        found, total = sum(retrieval.found), len(retrieval.found)
        table.add_row(
            line_of(console, retrieval.name, "bold"),
            f"{len(retrieval.picks):,}",
            f"{retrieval.units:,}",
            *[f"{retrieval.only:,}"] * several,
            *[Text(f"{found} of {total}", "green" if found == total else "red")]
            * known,
            f"{retrieval.tokens:,}",
            f"{retrieval.seconds:.3f}",
        )
    return table


def _print_picks(
    console: Console, comparison: Comparison, retrieval: Retrieval
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
        more = (
            f" [{pick.end - pick.start:,} characters]"
            if pick.end > pick.start + SHOWN
            else ""
        )
        shown = comparison.text[pick.start : min(pick.end, pick.start + SHOWN)] + more
        print_sentence(console, shown, (pick.rank, pick.score))


@contextmanager
def retriever_progress(
    visible: bool, turns: int, stream: TextIO | None = None
) -> Iterator[Callable[[str], None]]:
    """Show which retriever is running.

    Yields the ``started`` callback for `compare`.
    """
    with progress_bars(
        visible, TimeElapsedColumn(), transient=True, stream=stream
    ) as bars:
        task, begun = bars.add_task("", total=turns), iter(range(turns))

        def started(name: str) -> None:
            shown = line_of(bars.console, name).plain[-40:]
            bars.update(task, description=shown, completed=next(begun), refresh=True)

        yield started


def render_comparisons(comparisons: Sequence[Comparison]) -> str:
    """Render the page of comparisons.

    They have the same retrievers and question, and a document each.
    """
    several = len(comparisons) > 1
    titles = short_names([comparison.document.path for comparison in comparisons])
    all_documents = [
        _Document(number, comparison, title)
        for number, (comparison, title) in enumerate(
            zip(comparisons, titles, strict=True), start=1
        )
    ]
    shown = [
        each
        for each in all_documents
        if each.comparison.evidence or any(column.picks for column in each.columns)
    ]
    documents = shown or all_documents
    return render(
        "compare/page",
        comparisons[0].query,
        query=comparisons[0].query,
        several=several,
        path=name_of(comparisons[0].document.path),
        columns=len(comparisons[0].retrievals),
        with_evidence=any(comparison.evidence for comparison in comparisons),
        characters=sum(len(comparison.text) for comparison in comparisons),
        documents=documents,
        number=len(all_documents),
        without=[each.title for each in all_documents if each not in documents],
        best_of_all=_best_of_all(documents) if several else [],
        width=STRIP_WIDTH,
        height=STRIP_HEIGHT,
        evidence_height=EVIDENCE_HEIGHT,
        best=BEST,
        most_only=MOST_ONLY,
        quote=QUOTE,
        long_quote=LONG_QUOTE,
        longest=LONGEST,
    )


def _best_of_all(
    documents: Sequence["_Document"],
) -> list[list[tuple["_Column", "_Shown"] | None]]:
    """Row by row, the best picks of each retriever from all documents."""
    columns = []
    for own in zip(*(document.columns for document in documents), strict=True):
        picks = [(column, shown) for column in own for shown in column.picks]
        best = sorted(picks, key=lambda one: one[1].pick.rank)[:BEST]
        columns.append([*best, *[None] * (BEST - len(best))])
    return [list(row) for row in zip(*columns, strict=True) if any(row)]


class _Quote:
    """A span of a document, as shown on the page."""

    def __init__(self, document: "_Document", start: int, end: int) -> None:
        text, found = document.comparison.text, document.comparison.document
        page, section = found.page(start), found.section(start)
        self.line = page.name if page else f"line {found.position(start)[0]:,}"
        place = (
            self.line
            if section == self.line
            else ", ".join(filter(None, [section, self.line]))
        )
        self.place = f"{place} · at {100 * start / max(1, len(text)):.0f} %"
        self.words = text[start : min(end, start + LONGEST + 1)]
        self.before = ("…" if start > CONTEXT else "") + text[
            max(0, start - CONTEXT) : start
        ]
        self.after = text[end : end + CONTEXT] + (
            "…" if end + CONTEXT < len(text) else ""
        )

    def quote(self, characters: int) -> str:
        """The beginning of the span."""
        more = "…" if len(self.words) > characters else ""
        return readable(self.words[:characters]).rstrip() + more


class _Shown(_Quote):
    """A pick, as shown on the page."""

    def __init__(self, document: "_Document", column: int, pick: Pick) -> None:
        super().__init__(document, pick.start, pick.end)
        self.pick, self.id = pick, f"p{document.number}-{column}-{pick.rank}"
        self.title = f"rank {pick.rank} · {pick.score:.3f} · {self.line}"
        self.evidence = document.comparison.touches_evidence(pick.start, pick.end)


class _Tick(NamedTuple):
    x: float
    width: float
    kind: str
    reach: tuple[float, float] = (0, 0)
    height: float = 0
    pick: _Shown | None = None


class _Column:
    """The picks of one retriever from a document."""

    def __init__(
        self, number: int, label: str, retrieval: Retrieval, document: "_Document"
    ) -> None:
        self.number, self.label, self.retrieval, self.document = (
            number,
            label,
            retrieval,
            document,
        )
        self.picks = [_Shown(document, number, pick) for pick in retrieval.picks]
        self.only = [shown for shown in self.picks if shown.pick.only]

    def ticks(self) -> Iterator[_Tick]:
        """The marks of the strip, picks above the evidence.

        Better picks are taller.
        """
        comparison = self.document.comparison
        top = STRIP_HEIGHT - (EVIDENCE_HEIGHT if comparison.evidence else 0)
        last = max(
            (pick.rank for pick in self.retrieval.picks), default=1
        )  # ranks count over all documents
        for shown in reversed(self.picks):  # the best pick is drawn last, on top
            pick = shown.pick
            height = top * (1 - 0.6 * (pick.rank - 1) / last)
            reach = self._extent(pick.start, pick.end, REACH)
            kind = "only" if pick.only else "pick"
            yield _Tick(*self._extent(pick.start, pick.end), kind, reach, height, shown)
        for (start, end), found in zip(
            comparison.evidence_sentences, self.retrieval.found, strict=True
        ):
            yield _Tick(*self._extent(start, end), "found" if found else "missed")

    def _extent(
        self, start: int, end: int, least: float = THINNEST
    ) -> tuple[float, float]:
        """The left edge and the width of a span on the strip."""
        scale = STRIP_WIDTH / max(1, len(self.document.comparison.text))
        width = max(least, (end - start) * scale)
        left = (start + end) / 2 * scale - width / 2
        return min(max(0.0, left), STRIP_WIDTH - width), width


class _Document:
    """One comparison of the page; its number counts from 1."""

    def __init__(self, number: int, comparison: Comparison, title: str) -> None:
        self.number, self.comparison, self.title = number, comparison, title
        labels = short_labels([retrieval.name for retrieval in comparison.retrievals])
        self.verdict = verdict(comparison, labels)
        self.columns = [
            _Column(column, label, retrieval, self)
            for column, (label, retrieval) in enumerate(
                zip(labels, comparison.retrievals, strict=True), 1
            )
        ]

    def evidence(self) -> Iterator[tuple[_Quote, list[_Column], list[_Column]]]:
        """Each evidence sentence, who found it, and who missed it."""
        for number, span in enumerate(self.comparison.evidence_sentences):
            found = [
                column for column in self.columns if column.retrieval.found[number]
            ]
            missed = [column for column in self.columns if column not in found]
            yield _Quote(self, *span), found, missed


def verdict(comparison: Comparison, labels: Sequence[str]) -> str:
    """Summarize a comparison in one or two sentences of plain text."""
    if comparison.evidence_sentences:
        return _verdict_on_evidence(comparison, labels)
    if len(labels) < 2:
        return "One retriever: give several to compare them."
    tops = [
        retrieval.picks[0] for retrieval in comparison.retrievals if retrieval.picks
    ]
    apart = len(tops) < len(labels) or any(
        one.start >= other.end or other.start >= one.end
        for one in tops
        for other in tops
    )
    agreed = "do not agree on what is best" if apart else "put the same place first"
    return (
        f"The {len(labels)} retrievers {agreed}. Pass --evidence to see which one is"
        " right."
    )


def _verdict_on_evidence(comparison: Comparison, labels: Sequence[str]) -> str:
    total = len(comparison.evidence_sentences)
    # per retriever: number of evidence sentences, and the best rank of a pick that
    # overlaps one
    found = []
    for retrieval in comparison.retrievals:
        pairs = zip(comparison.evidence_sentences, retrieval.found, strict=True)
        spans = [span for span, is_found in pairs if is_found]
        ranks = [
            pick.rank
            for pick in retrieval.picks
            if any(pick.start < end and start < pick.end for start, end in spans)
        ]
        found.append((len(spans), min(ranks, default=0)))
    most = max(number for number, _ in found)
    if most == 0:
        return (
            "No retriever found"
            f" {f'any of the {total} evidence sentences' if total > 1 else _THE_ONE}."
        )
    both = (
        "both evidence sentences" if total == 2 else f"all {total} evidence sentences"
    )
    all_of = (
        _THE_ONE
        if total == 1
        else both
        if most == total
        else f"{most} of {total} evidence sentences"
    )
    winners = [
        (rank, label)
        for label, (number, rank) in zip(labels, found, strict=True)
        if number == most
    ]
    winners.sort(
        key=lambda winner: winner[0]
    )  # equal ranks keep the order of the retrievals
    who = listed([label for _, label in winners]) + (
        " each" if len(winners) > 1 else ""
    )
    ranks_of = [f"{rank}" for rank, _ in winners]
    at = (
        f"at rank {ranks_of[0]}"
        if len(set(ranks_of)) == 1
        else f"at ranks {listed(ranks_of)}"
    )
    where = f"{', the first' if most > 1 else ''} {at}"
    others = [
        f"{label} found {number or 'none'}"
        for label, (number, _) in zip(labels, found, strict=True)
        if number < most
    ]
    return f"{who} found {all_of}{where}{f'; {listed(others)}' if others else ''}."
