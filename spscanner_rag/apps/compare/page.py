"""Renders comparisons as one HTML page, whose documents are never read as markup.

The page shows the best picks of each retriever, then what only one retriever found,
then all picks.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.apps.compare.results import ComparedDocument, Pick, Retrieval
from spscanner_rag.apps.compare.verdict import verdict
from spscanner_rag.apps.pages.html_page import (
    readable,
    render,
    short_labels,
    short_names,
)
from spscanner_rag.files.documents import TextFile, name_of

STRIP_WIDTH = 1000
STRIP_HEIGHT = 20
EVIDENCE_HEIGHT = 5
# minimum widths of a tick and of its clickable area, in the strip's units
THINNEST = 5
REACH = 20

BEST = 3  # picks of each retriever at the top of the page
MOST_ONLY = 10  # picks of each retriever that no other found

# characters of a pick: in a list, among the best, and at most
QUOTE = 240
LONG_QUOTE = 600
LONGEST = 2_000
CONTEXT = 160  # characters on each side of a pick


def render_comparisons(comparisons: Sequence[ComparedDocument]) -> str:
    """Render the page of comparisons.

    They have the same retrievers and question, and a document each.
    """
    first_comparison = comparisons[0]
    several = len(comparisons) > 1
    all_documents = _documents_of(comparisons)
    documents = [document for document in all_documents if document.is_worth_showing]
    titles_without_picks: list[str] = []
    if documents:
        for document in all_documents:
            if document not in documents:
                titles_without_picks.append(document.title)
    else:
        documents = all_documents
    return render(
        "compare/page",
        first_comparison.query,
        query=first_comparison.query,
        several=several,
        path=name_of(first_comparison.document.path),
        columns=len(first_comparison.retrievals),
        characters=sum(len(comparison.text) for comparison in comparisons),
        documents=documents,
        number=len(all_documents),
        without=titles_without_picks,
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


def _documents_of(comparisons: Sequence[ComparedDocument]) -> "list[_Document]":
    titles = short_names([comparison.document.path for comparison in comparisons])
    documents: list[_Document] = []
    for comparison, title in zip(comparisons, titles, strict=True):
        documents.append(_Document(len(documents) + 1, comparison, title))
    return documents


def _best_of_all(
    documents: Sequence["_Document"],
) -> list[list[tuple["_Column", "_ShownPick"] | None]]:
    """Row by row, the best picks of each retriever from all documents."""
    rows: list[list[tuple[_Column, _ShownPick] | None]] = [[] for _ in range(BEST)]
    for columns in zip(*(document.columns for document in documents), strict=True):
        picks: list[tuple[_Column, _ShownPick]] = []
        for column in columns:
            picks.extend((column, pick) for pick in column.picks)
        picks.sort(key=lambda column_and_pick: column_and_pick[1].pick.rank)
        for rank, row in enumerate(rows):
            row.append(picks[rank] if rank < len(picks) else None)
    return [row for row in rows if any(row)]


class _Quote:
    """A span of a document, as shown on the page."""

    def __init__(self, document: "_Document", start: int, end: int) -> None:
        text = document.comparison.text
        self.line = _line_in(document.comparison.document, start)
        section = document.comparison.document.section(start)
        section_and_line = self.line
        if section and section != self.line:
            section_and_line = f"{section}, {self.line}"
        share = 100 * start / max(1, len(text))
        self.place = f"{section_and_line} · at {share:.0f} %"
        self.words = text[start : min(end, start + LONGEST + 1)]
        self.before = text[max(0, start - CONTEXT) : start]
        if start > CONTEXT:
            self.before = "…" + self.before
        self.after = text[end : end + CONTEXT]
        if end + CONTEXT < len(text):
            self.after += "…"

    def quote(self, characters: int) -> str:
        """The beginning of the span."""
        beginning = readable(self.words[:characters]).rstrip()
        if len(self.words) > characters:
            beginning += "…"
        return beginning


def _line_in(document: TextFile, offset: int) -> str:
    """The name of the page at an offset, or of the line in a text without pages."""
    page = document.page(offset)
    if page:
        return page.name
    line, _ = document.position(offset)
    return f"line {line:,}"


class _ShownPick(_Quote):
    """A pick, as shown on the page."""

    def __init__(self, document: "_Document", column: int, pick: Pick) -> None:
        super().__init__(document, pick.start, pick.end)
        self.pick = pick
        self.id = f"p{document.number}-{column}-{pick.rank}"
        self.title = f"rank {pick.rank} · {pick.score:.3f} · {self.line}"
        self.evidence = document.comparison.touches_evidence(pick.start, pick.end)


class _Tick(NamedTuple):
    """A mark on the strip.

    ``reach`` has the left edge and the width of its clickable area.
    """

    x: float
    width: float
    kind: str
    reach: tuple[float, float] = (0, 0)
    height: float = 0
    pick: _ShownPick | None = None


class _Column:
    """The picks of one retriever from a document."""

    def __init__(
        self, number: int, label: str, retrieval: Retrieval, document: "_Document"
    ) -> None:
        self.number = number
        self.label = label
        self.retrieval = retrieval
        self.document = document
        self.picks = [_ShownPick(document, number, pick) for pick in retrieval.picks]
        self.only = [shown for shown in self.picks if shown.pick.only]

    def ticks(self) -> Iterator[_Tick]:
        """The marks of the strip, picks above the evidence.

        Better picks are taller.
        """
        # the best pick is drawn last, on top
        for shown in reversed(self.picks):
            yield self._tick_of(shown)
        sentences = zip(
            self.document.comparison.evidence_sentences,
            self.retrieval.found,
            strict=True,
        )
        for (start, end), is_found in sentences:
            x, width = self._extent(start, end)
            yield _Tick(x, width, "found" if is_found else "missed")

    def _tick_of(self, shown: _ShownPick) -> _Tick:
        pick = shown.pick
        tallest = STRIP_HEIGHT
        if self.document.comparison.evidence:
            tallest -= EVIDENCE_HEIGHT
        # ranks count over all documents
        last_rank = max(pick.rank for pick in self.retrieval.picks)
        x, width = self._extent(pick.start, pick.end)
        return _Tick(
            x,
            width,
            kind="only" if pick.only else "pick",
            reach=self._extent(pick.start, pick.end, REACH),
            height=tallest * (1 - 0.6 * (pick.rank - 1) / last_rank),
            pick=shown,
        )

    def _extent(
        self, start: int, end: int, least: float = THINNEST
    ) -> tuple[float, float]:
        """The left edge and the width of a span on the strip."""
        scale = STRIP_WIDTH / max(1, len(self.document.comparison.text))
        width = max(least, (end - start) * scale)
        left = (start + end) / 2 * scale - width / 2
        return min(max(0.0, left), STRIP_WIDTH - width), width


class _Document:
    """One comparison of the page, with a number that counts from 1."""

    def __init__(self, number: int, comparison: ComparedDocument, title: str) -> None:
        self.number = number
        self.comparison = comparison
        self.title = title
        labels = short_labels([retrieval.name for retrieval in comparison.retrievals])
        self.verdict = verdict(comparison, labels)
        self.columns: list[_Column] = []
        for label, retrieval in zip(labels, comparison.retrievals, strict=True):
            column_number = len(self.columns) + 1
            self.columns.append(_Column(column_number, label, retrieval, self))

    @property
    def is_worth_showing(self) -> bool:
        """True if it has evidence or a pick."""
        return bool(self.comparison.evidence) or self.comparison.has_picks

    def evidence(self) -> Iterator[tuple[_Quote, list[_Column], list[_Column]]]:
        """Each evidence sentence, who found it, and who missed it."""
        for number, span in enumerate(self.comparison.evidence_sentences):
            finders: list[_Column] = []
            missers: list[_Column] = []
            for column in self.columns:
                group = finders if column.retrieval.found[number] else missers
                group.append(column)
            yield _Quote(self, *span), finders, missers
