"""A comparison as one HTML page: the best picks of each retriever, what only one found, then all of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.apps.compare.retrievals import Pick, Retrieval, Retrievals
from spscanner_rag.apps.compare.verdict import verdict
from spscanner_rag.apps.pages.html_page import page_style, render, resource
from spscanner_rag.apps.pages.labels import short_labels, short_names
from spscanner_rag.apps.pages.quotes import readable
from spscanner_rag.files.documents import name_of

STRIP_WIDTH, STRIP_HEIGHT, EVIDENCE_HEIGHT = 1000, 20, 5
THINNEST, REACH = 5, 20  # least widths of a tick and of its clickable area, in the strip's units

BEST = 3  # picks of each retriever that the page begins with
MOST_ONLY = 10  # picks that no other found, of each retriever
QUOTE, LONG_QUOTE, LONGEST = (
    240,
    600,
    2_000,
)  # characters of a pick: in a list, among the best, and in any case
CONTEXT = 160  # characters on each side of a pick


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


def _best_of_all(documents: Sequence["_Document"]) -> list[list[tuple["_Column", "_Shown"] | None]]:
    """Row by row, the best picks of each retriever from all documents."""
    columns = []
    for own in zip(*(document.columns for document in documents), strict=True):
        picks = [(column, shown) for column in own for shown in column.picks]
        best = sorted(picks, key=lambda one: one[1].pick.rank)[:BEST]
        columns.append([*best, *[None] * (BEST - len(best))])
    return [list(row) for row in zip(*columns, strict=True) if any(row)]


class _Quote:
    """A span of a document as the page shows it."""

    def __init__(self, document: "_Document", start: int, end: int) -> None:
        text, found = document.comparison.text, document.comparison.document
        page, section = found.page(start), found.section(start)
        self.line = page.name if page else f"line {found.position(start)[0]:,}"
        place = self.line if section == self.line else ", ".join(filter(None, [section, self.line]))
        self.place = f"{place} · at {100 * start / max(1, len(text)):.0f} %"
        self.words = text[start : min(end, start + LONGEST + 1)]
        self.before = ("…" if start > CONTEXT else "") + text[max(0, start - CONTEXT) : start]
        self.after = text[end : end + CONTEXT] + ("…" if end + CONTEXT < len(text) else "")

    def quote(self, characters: int) -> str:
        """Its beginning."""
        more = "…" if len(self.words) > characters else ""
        return readable(self.words[:characters]).rstrip() + more


class _Shown(_Quote):
    """A pick as the page shows it."""

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

    def __init__(self, number: int, label: str, retrieval: Retrieval, document: "_Document") -> None:
        self.number, self.label, self.retrieval, self.document = number, label, retrieval, document
        self.picks = [_Shown(document, number, pick) for pick in retrieval.picks]
        self.only = [shown for shown in self.picks if shown.pick.only]

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
        labels = short_labels([retrieval.name for retrieval in comparison.retrievals])
        self.verdict = verdict(comparison, labels)
        self.columns = [
            _Column(column, label, retrieval, self)
            for column, (label, retrieval) in enumerate(zip(labels, comparison.retrievals, strict=True), 1)
        ]

    def evidence(self) -> Iterator[tuple[_Quote, list[_Column], list[_Column]]]:
        """Each evidence sentence, who found it, and who missed it."""
        for number, span in enumerate(self.comparison.evidence_sentences):
            found = [column for column in self.columns if column.retrieval.found[number]]
            missed = [column for column in self.columns if column not in found]
            yield _Quote(self, *span), found, missed
