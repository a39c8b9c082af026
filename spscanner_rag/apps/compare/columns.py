"""The columns of a comparison page: strips, highlighted text and elided stretches of one document."""

from bisect import bisect_right
from collections.abc import Iterator

from spscanner_rag.apps.compare.layout import Stretch, lay_out
from spscanner_rag.apps.compare.retrievals import Pick, Retrievals
from spscanner_rag.apps.pages.labels import short_labels
from spscanner_rag.apps.pages.line_breaks import Breaks
from spscanner_rag.text.escaping import escaped_line

STRIP_WIDTH, STRIP_HEIGHT, EVIDENCE_HEIGHT = 1000, 20, 5
THINNEST, REACH = 5, 20  # least widths of a tick and of its clickable area, in the strip's units


class Columns:
    """Writes one document of a comparison as HTML; ``number`` is its place on the page, from 1."""

    def __init__(self, number: int, comparison: Retrievals) -> None:
        self.number, self.comparison = number, comparison
        self.labels = short_labels([retrieval.name for retrieval in comparison.retrievals])
        self._breaks = Breaks(comparison.text)
        self.layout = lay_out(comparison, self._breaks)
        self._in_order = [
            sorted(retrieval.picks, key=lambda pick: pick.start) for retrieval in comparison.retrievals
        ]

    def link(self, column: int, pick: Pick) -> str:
        """The link to a pick on the page; empty if the pick is on the strip only."""
        return f"#{self._id(column, pick)}" if self.layout.shows(pick.start) else ""

    def strip(self, column: int) -> str:
        """The document from left to right: a retriever's picks, better ones taller, above the evidence."""
        retrieval = self.comparison.retrievals[column - 1]
        name = escaped_line(self.labels[column - 1])
        parts = [
            f'<svg class="strip" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}" preserveAspectRatio="none" role="img" '
            f'aria-label="Where the picks of {name} stand in the document">'
            f'<rect class="track" width="{STRIP_WIDTH}" height="{STRIP_HEIGHT}"/>'
        ]
        top = STRIP_HEIGHT - (EVIDENCE_HEIGHT if self.comparison.evidence else 0)
        last = max((pick.rank for pick in retrieval.picks), default=1)  # other documents have ranks too
        for pick in reversed(retrieval.picks):  # the best pick is drawn last, on top
            height = top * (1 - 0.6 * (pick.rank - 1) / last)
            tick = (
                f'<rect class="{"only" if pick.only else "pick"}" {self._extent(pick.start, pick.end)} '
                f'y="{top - height:.1f}" height="{height:.1f}"/>'
            )
            link = self.link(column, pick)
            title = f"<title>{self._facts(pick)}</title>"
            reach = f'<rect class="reach" {self._extent(pick.start, pick.end, REACH)} height="{top}"/>'
            parts.append(f'<a href="{link}" tabindex="-1">{title}{tick}{reach}</a>' if link else tick)
        for (start, end), found in zip(self.comparison.evidence_sentences, retrieval.found, strict=True):
            parts.append(
                f'<rect class="{"found" if found else "missed"}" {self._extent(start, end)} '
                f'y="{top}" height="{EVIDENCE_HEIGHT}"/>'
            )
        return "".join([*parts, "</svg>"])

    def rows(self) -> Iterator[str]:
        """Rows of the same text in every column, and the elided stretches between them."""
        for stretch in self.layout.stretches:
            if not stretch.shown:
                yield self._gap(stretch)
                continue
            yield '<div class="row">'
            for column in range(1, len(self.comparison.retrievals) + 1):
                yield f'<div class="cell c{column}" lang="" dir="auto">{self._cell(column, stretch)}</div>'
            yield "</div>\n"

    def _cell(self, column: int, stretch: Stretch) -> str:
        picks = self._in_order[column - 1]
        parts, cursor = [], stretch.start
        for pick in picks[bisect_right(picks, cursor, key=lambda pick: pick.end) :]:
            if pick.start >= stretch.end:
                break
            start, end = max(pick.start, cursor), min(pick.end, stretch.end)
            parts += [self._text(cursor, start, "miss"), self._mark(column, pick, start, end)]
            cursor = end
        return "".join([*parts, self._text(cursor, stretch.end, "miss")])

    def _mark(self, column: int, pick: Pick, start: int, end: int) -> str:
        only = " only" if pick.only else ""
        content = self._text(start, end, "hit")
        if start > pick.start:  # continues from the row before
            return f'<mark class="more{only}">{content}</mark>'
        return (
            f'<b class="rank{only}">{pick.rank}{only}</b><mark class="pick{only}" '
            f'id="{self._id(column, pick)}" data-start="{start}" title="{self._facts(pick)}">{content}</mark>'
        )

    def _gap(self, stretch: Stretch) -> str:
        characters = stretch.end - stretch.start
        first, _ = self.comparison.document.position(stretch.start)
        last, _ = self.comparison.document.position(stretch.end - 1)
        lines = f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"
        inside = [
            f"pick {pick.rank} of {escaped_line(label)}"
            for label, picks in zip(self.labels, self._in_order, strict=True)
            for pick in picks
            if pick.start < stretch.end and pick.end > stretch.start
        ]
        within = f", with {', '.join(inside[:3])}{' and others' if len(inside) > 3 else ''}" if inside else ""
        kept = min(characters, self.layout.kept_per_gap)
        start, end = stretch.start + kept // 2, stretch.end - (kept - kept // 2)
        omitted = (
            f'<span class="cut">{end - start:,} characters are not on this page</span>' if end > start else ""
        )
        return (
            f'<details class="gap"><summary>{characters:,} characters elided, {lines}{within}</summary>'
            f'<div class="elided" lang="" dir="auto">{self._plain(stretch.start, start)}{omitted}'
            f"{self._plain(end, stretch.end)}</div></details>\n"
        )

    def _text(self, start: int, end: int, kind: str) -> str:
        """Text with the evidence in it marked as found ("hit") or missed ("miss")."""
        parts, evidence = [], self.comparison.evidence
        for first, last in evidence[bisect_right(evidence, start, key=lambda span: span[1]) :]:
            if first >= end:
                break
            first, last = max(first, start), min(last, end)
            content = self._plain(first, last)
            blank = self.comparison.text[first:last].isspace()
            parts += [
                self._plain(start, first),
                content if blank else f'<span class="{kind}">{content}</span>',
            ]
            start = last
        return "".join([*parts, self._plain(start, end)])

    def _plain(self, start: int, end: int) -> str:
        return self._breaks.html(start, end)

    def _id(self, column: int, pick: Pick) -> str:
        return f"p{self.number}-{column}-{pick.rank}"

    def _facts(self, pick: Pick) -> str:
        line, _ = self.comparison.document.position(pick.start)
        return f"rank {pick.rank} · {pick.score:.3f} · line {line:,}"

    def _extent(self, start: int, end: int, least: float = THINNEST) -> str:
        scale = STRIP_WIDTH / max(1, len(self.comparison.text))
        width = max(least, (end - start) * scale)
        left = (start + end) / 2 * scale - width / 2
        return f'x="{min(max(0, left), STRIP_WIDTH - width):.1f}" width="{width:.1f}"'
