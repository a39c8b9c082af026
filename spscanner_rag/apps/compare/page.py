"""A comparison as one HTML page: the best picks of each retriever, what only one found, then the text."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from spscanner_rag.apps.compare.layout import Stretch, lay_out
from spscanner_rag.apps.compare.retrievals import Pick, Retrieval, Retrievals
from spscanner_rag.apps.compare.verdict import leaders, verdict
from spscanner_rag.apps.pages.html_page import page_style, render, resource
from spscanner_rag.apps.pages.labels import short_labels, short_names
from spscanner_rag.apps.pages.quotes import Breaks, readable
from spscanner_rag.files.documents import name_of

STRIP_WIDTH, STRIP_HEIGHT, EVIDENCE_HEIGHT = 1000, 20, 5
THINNEST, REACH = 5, 20  # least widths of a tick and of its clickable area, in the strip's units

BEST = 3  # picks of each retriever that the page begins with
MOST_ONLY = 10  # picks that no other found, of each retriever
QUOTE, LONG_QUOTE = 240, 600  # characters of a pick in the lists, and among the best
Pieces = list[tuple[Markup, str]]
"""Text, with "hit" for evidence that was found, "miss" for evidence that was not, else nothing."""


def render_comparisons(comparisons: Sequence[Retrievals]) -> str:
    """The page of comparisons of the same retrievers and question, each on a document of its own."""
    several = len(comparisons) > 1
    titles = short_names([comparison.document.path for comparison in comparisons])
    all_documents = [
        _Document(number, comparison, title)
        for number, (comparison, title) in enumerate(zip(comparisons, titles, strict=True), start=1)
    ]
    shown = [
        each
        for each in all_documents
        if each.comparison.evidence or any(column.picks for column in each.columns)
    ]
    documents = shown or all_documents
    return render(
        "compare/page.html",
        comparisons[0].query,
        page_style("compare/page.css"),
        resource("compare/page.js"),
        query=comparisons[0].query,
        several=several,
        path=name_of(comparisons[0].document.path),
        columns=len(comparisons[0].retrievals),
        with_evidence=any(comparison.evidence for comparison in comparisons),
        characters=sum(len(comparison.text) for comparison in comparisons),
        first=next((column for comparison in comparisons for column in leaders(comparison)), 1),
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
    )


def _best_of_all(documents: Sequence["_Document"]) -> list[list[tuple["_Column", "_Shown"] | None]]:
    """Row by row, the best picks of each retriever from all documents."""
    columns = []
    for own in zip(*(document.columns for document in documents), strict=True):
        picks = [(column, shown) for column in own for shown in column.picks]
        best = sorted(picks, key=lambda one: one[1].pick.rank)[:BEST]
        columns.append([*best, *[None] * (BEST - len(best))])
    return [list(row) for row in zip(*columns, strict=True) if any(row)]


@dataclass(frozen=True)
class _Shown:
    """A pick as the page shows it."""

    pick: Pick
    id: str
    linked: bool  # it is in the text, not on the strip only
    line: str  # or page
    place: str
    words: str
    evidence: bool

    @property
    def title(self) -> str:
        return f"rank {self.pick.rank} · {self.pick.score:.3f} · {self.line}"

    def quote(self, characters: int) -> str:
        more = "…" if len(self.words) > characters else ""
        return readable(self.words[:characters]).rstrip() + more


class _Part(NamedTuple):
    """A part of a cell: a pick, or text between picks."""

    pieces: Pieces
    pick: _Shown | None = None
    continued: bool = False  # the pick began in the row before


class _Tick(NamedTuple):
    x: float
    width: float
    kind: str
    reach: tuple[float, float] = (0, 0)
    height: float = 0
    pick: _Shown | None = None


class _Gap(NamedTuple):
    characters: int
    lines: str
    picks: list[str]
    text: Markup | None  # None if the page does not hold it


class _Column:
    """The picks of one retriever from a document."""

    def __init__(self, number: int, label: str, retrieval: Retrieval, document: "_Document") -> None:
        self.number, self.label, self.retrieval, self.document = number, label, retrieval, document
        self.picks = [document.shown(number, pick) for pick in retrieval.picks]
        self.in_order = sorted(self.picks, key=lambda shown: shown.pick.start)
        self.only = [shown for shown in self.picks if shown.pick.only]
        self.leads = number in document.leaders

    def ticks(self) -> Iterator[_Tick]:
        """The strip, from left to right: the picks, better ones taller, above the evidence."""
        comparison = self.document.comparison
        top = STRIP_HEIGHT - (EVIDENCE_HEIGHT if comparison.evidence else 0)
        last = max((pick.rank for pick in self.retrieval.picks), default=1)  # other documents have ranks too
        for shown in reversed(self.picks):  # the best pick is drawn last, on top
            pick = shown.pick
            height = top * (1 - 0.6 * (pick.rank - 1) / last)
            reach = self._extent(pick.start, pick.end, REACH)
            kind = "only" if pick.only else "pick"
            yield _Tick(*self._extent(pick.start, pick.end), kind, reach, height, shown)
        for (start, end), found in zip(comparison.evidence_sentences, self.retrieval.found, strict=True):
            yield _Tick(*self._extent(start, end), "found" if found else "missed")

    def cell(self, stretch: Stretch) -> Iterator[_Part]:
        """The text of a stretch, with the picks in it."""
        picks, cursor = self.in_order, stretch.start
        for shown in picks[bisect_right(picks, cursor, key=lambda shown: shown.pick.end) :]:
            if shown.pick.start >= stretch.end:
                break
            start, end = max(shown.pick.start, cursor), min(shown.pick.end, stretch.end)
            yield _Part(self._pieces(cursor, start, "miss"))
            yield _Part(self._pieces(start, end, "hit"), shown, start > shown.pick.start)
            cursor = end
        yield _Part(self._pieces(cursor, stretch.end, "miss"))

    def _pieces(self, start: int, end: int, kind: str) -> Pieces:
        comparison, text = self.document.comparison, self.document.breaks.html
        parts: Pieces = []
        evidence = comparison.evidence
        for first, last in evidence[bisect_right(evidence, start, key=lambda span: span[1]) :]:
            if first >= end:
                break
            first, last = max(first, start), min(last, end)
            blank = comparison.text[first:last].isspace()
            parts += [(text(start, first), ""), (text(first, last), "" if blank else kind)]
            start = last
        return [*parts, (text(start, end), "")]

    def _extent(self, start: int, end: int, least: float = THINNEST) -> tuple[float, float]:
        """The left edge of a span on the strip, and its width."""
        scale = STRIP_WIDTH / max(1, len(self.document.comparison.text))
        width = max(least, (end - start) * scale)
        left = (start + end) / 2 * scale - width / 2
        return min(max(0.0, left), STRIP_WIDTH - width), width


class _Document:
    """One comparison of the page, whose number counts from 1."""

    def __init__(self, number: int, comparison: Retrievals, title: str) -> None:
        self.number, self.comparison, self.title = number, comparison, title
        self.breaks = Breaks(comparison.text)
        self.layout = lay_out(comparison, self.breaks)
        self.leaders = leaders(comparison)
        labels = short_labels([retrieval.name for retrieval in comparison.retrievals])
        self.verdict = verdict(comparison, labels)
        self.columns = [
            _Column(column, label, retrieval, self)
            for column, (label, retrieval) in enumerate(zip(labels, comparison.retrievals, strict=True), 1)
        ]

    def shown(self, column: int, pick: Pick) -> _Shown:
        comparison = self.comparison
        line, section = self._line(pick.start), comparison.document.section(pick.start)
        place = line if section == line else ", ".join(filter(None, [section, line]))
        return _Shown(
            pick,
            id=f"p{self.number}-{column}-{pick.rank}",
            linked=self.layout.shows(pick.start),
            line=line,
            place=f"{place} · at {100 * pick.start / max(1, len(comparison.text)):.0f} %",
            words=comparison.text[pick.start : min(pick.end, pick.start + LONG_QUOTE + 1)],
            evidence=comparison.touches_evidence(pick.start, pick.end),
        )

    def _line(self, offset: int) -> str:
        document = self.comparison.document
        page = document.page(offset)
        return page.name if page else f"line {document.position(offset)[0]:,}"

    def gap(self, stretch: Stretch) -> _Gap:
        """A stretch that is elided, which a reader can unfold."""
        first, last = self._line(stretch.start), self._line(stretch.end - 1)
        inside = [
            f"pick {shown.pick.rank} of {column.label}"
            for column in self.columns
            for shown in column.in_order
            if shown.pick.start < stretch.end and shown.pick.end > stretch.start
        ]
        text = self.breaks.html(stretch.start, stretch.end) if self.layout.keeps_elided else None
        lines = first if first == last else f"{first} to {last.split(' ', 1)[1]}"
        return _Gap(stretch.end - stretch.start, lines, inside, text)
