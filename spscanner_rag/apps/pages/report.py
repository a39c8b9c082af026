"""The page of scanned documents, which opens at the best sentence.

Its links also work without its script.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from spscanner_rag.apps.pages.html_page import Breaks, readable, render, short_names
from spscanner_rag.apps.pages.scanned_document import (
    NOT_CLEAR,
    ScannedDocument,
    compression_of,
    is_unclear,
)
from spscanner_rag.files.documents import name_of
from spscanner_rag.files.readers.pdf_pictures import Picture
from spscanner_rag.results import Passage, ScanResult

REPORT = "pages/templates/report"
LEVELS = 8  # highlight strengths
STRIP_WIDTH = 1000
STRIP_HEIGHT = 40
STRIP_PARTS = 500
# minimum widths of a tick and of its clickable area, in the strip's units
THINNEST = 4
REACH = 22

_BLOCK_CHARACTERS = 4_000  # browsers lay out a block only when it comes into view
_LONGEST_BLOCK_CHARACTERS = 64_000


class _Pick:
    """A pick of a document, as shown on the page."""

    def __init__(self, passage: Passage, shown: "_Shown") -> None:
        page = shown.page
        document = shown.scanned.document
        start = passage.start
        self.id = f"{shown.number}-{shown.scanned.number(passage)}"
        self.rank = shown.scanned.ranks[start]
        self.score = passage.score
        self.quote = readable(passage.text)
        self.level = level_of(passage.score)
        self.first = passage.score == page.first  # the best on the page
        section = document.section(start)
        page_of = document.page(start)
        line = page_of.name if page_of else f"line {document.position(start)[0]:,}"
        self.place = f"{section} · {line}" if section and not page_of else line
        where = f"{shown.name}, {line}" if page.several else line
        share = f"{100 * start / max(1, len(shown.text)):.0f} %"
        self.facts = (
            f"{self.rank} of {page.picks} · score {self.score:.3f} · {where} · {share}"
            " into the document"
        )
        # The left edges of the tick and of its clickable area on the strip, and the
        # height.
        middle = (start + passage.end) / 2 * STRIP_WIDTH / max(1, len(shown.text))
        self.x = _left_edge(middle, THINNEST)
        self.reach = _left_edge(middle, REACH)
        self.height = max(6.0, STRIP_HEIGHT * self.score / max(page.best, 1e-12))


def _left_edge(middle: float, width: float) -> float:
    """The left edge of a mark that does not leave the strip."""
    return min(max(0.0, middle - width / 2), STRIP_WIDTH - width)


class _Block(NamedTuple):
    at: int  # offset of its first character
    parts: list[tuple[Markup, _Pick | None]]


class _Sheet(NamedTuple):
    """A page of a PDF as a picture, with rectangles over its picks."""

    name: str
    picture: Picture
    png: Markup
    marks: list[tuple[_Pick, list[Sequence[int]]]]


class _Shown:
    """One document of the page, with a number that counts from 1."""

    def __init__(
        self, number: int, scanned: ScannedDocument, name: str, page: "_Page"
    ) -> None:
        self.number = number
        self.scanned = scanned
        self.name = name
        self.page = page
        self.path = name_of(scanned.document.path)
        self.text = scanned.document.text

    @cached_property
    def picks(self) -> dict[int, _Pick]:
        """The picks by their start offset, in the requested order."""
        return {passage.start: _Pick(passage, self) for passage in self.scanned.picks}

    def sheets(self, pictures: Sequence[Picture]) -> Iterator[_Sheet]:
        """The pictures of its pages, with the picks on them."""
        names = {page.number: page.name for page in self.scanned.document.pages}
        picks = list(self.picks.values())
        for picture in pictures:
            marks: dict[int, list[Sequence[int]]] = {}
            for number, *rectangle in picture.places:
                marks.setdefault(number, []).append(rectangle)
            marked_picks = [(picks[number], marks[number]) for number in sorted(marks)]
            name = names[picture.number]
            yield _Sheet(name, picture, Markup(picture.png), marked_picks)

    def profile(self) -> str:
        """The outline of the strip, as an SVG path.

        Its height is the best score at each place.
        """
        step = STRIP_WIDTH / STRIP_PARTS
        scores = profile_of(self.scanned.result, STRIP_PARTS)
        heights = STRIP_HEIGHT * scores / max(self.page.best, 1e-12)
        bars: list[str] = []
        for part, height in enumerate(heights.clip(0, STRIP_HEIGHT).tolist()):
            if height >= 0.4:
                bars.append(
                    f"M{part * step:g} {STRIP_HEIGHT}"
                    f"V{STRIP_HEIGHT - height:.1f}h{step:g}V{STRIP_HEIGHT}z"
                )
        return "".join(bars)

    def blocks(self) -> Iterator[_Block]:
        """The text in blocks, which end at the end of a paragraph.

        One that is far too long also ends inside a paragraph.
        """
        breaks = Breaks(self.text)
        block = _Block(0, [])
        cursor = 0  # the end of the text so far
        for start, end in self.scanned.spans():
            cut = _cut(breaks, cursor, start, start - block.at)
            if cut is not None:  # the end of the block shows the line break at the cut
                block.parts.append((breaks.html(cursor, cut), None))
                yield block
                cursor = cut + 1 if cut < start else cut
                block = _Block(cursor, [])
            block.parts.append((breaks.html(cursor, start), None))
            block.parts.append((breaks.html(start, end), self.picks.get(start)))
            cursor = end
        block.parts.append((breaks.html(cursor, len(self.text)), None))
        yield block


def profile_of(result: ScanResult, parts: int) -> NDArray[np.float64]:
    """The best score in each of ``parts`` equal parts of the document: (parts,).

    It is 0 without a sentence.
    """
    profile = np.zeros(parts)
    characters = max(1, len(result.text))
    first = result.starts * parts // characters
    last = np.minimum((result.ends - 1) * parts // characters, parts - 1)
    spread = last - first + 1  # number of parts that each sentence touches: (n,)
    behind = np.arange(spread.sum()) - np.repeat(np.cumsum(spread) - spread, spread)
    np.maximum.at(
        profile, np.repeat(first, spread) + behind, np.repeat(result.scores, spread)
    )
    return profile


class _Page(NamedTuple):
    best: float  # the highest score of any sentence
    first: float  # the highest score of any pick
    picks: int
    several: bool  # whether there are several documents


def render_report(
    query: str,
    model: str,
    scanned: Sequence[ScannedDocument],
    *,
    pictures: Sequence[Picture] = (),
    inside: bool = False,
) -> str:
    """Render the page for documents in the order given, with their picks.

    ``model`` is the checkpoint's source.

    ``pictures`` are pages of the first document, a PDF, whose passages are its picks in
    order. With ``inside``, the page has no heading, because it is part of another page
    that shows the question.
    """
    page = _page_of(scanned)
    names = short_names([document.document.path for document in scanned])
    documents: list[_Shown] = []
    for scanned_document, name in zip(scanned, names, strict=True):
        documents.append(_Shown(len(documents) + 1, scanned_document, name, page))
    return render(
        REPORT,
        query,
        more_policy="; img-src data:" if pictures else "",
        inside=inside,
        sheets=list(documents[0].sheets(pictures)) if pictures else [],
        query=query,
        model="the bundled one" if model == "default" else model,
        documents=documents,
        without=[document for document in documents if not document.picks],
        best=_best_of_all(documents),
        page=page,
        characters=sum(len(document.result.text) for document in scanned),
        sentences=sum(len(document.result.logits) for document in scanned),
        counted=compression_of(scanned),
        unclear=NOT_CLEAR if is_unclear(scanned) else "",
        levels=range(1, LEVELS + 1),
        width=STRIP_WIDTH,
        height=STRIP_HEIGHT,
        thinnest=THINNEST,
        reach=REACH,
    )


def _page_of(scanned: Sequence[ScannedDocument]) -> _Page:
    best_score = 0.0
    best_pick_score = 0.0
    n_picks = 0
    for document in scanned:
        if len(document.result.scores):
            best_score = max(best_score, float(document.result.scores.max()))
        for pick in document.picks:
            best_pick_score = max(best_pick_score, pick.score)
        n_picks += len(document.picks)
    return _Page(best_score, best_pick_score, n_picks, several=len(scanned) > 1)


def _best_of_all(
    documents: Sequence[_Shown], limit: int = 3
) -> list[tuple[_Pick, _Shown]]:
    """The best picks if they are in several documents.

    Else none, because that document's list has them first.
    """
    picks: list[tuple[_Pick, _Shown]] = []
    for document in documents:
        picks.extend((pick, document) for pick in document.picks.values())
    n_documents = len({document.number for _, document in picks})
    if n_documents < 2:
        return []
    picks.sort(key=lambda pick_and_document: pick_and_document[0].rank)
    return picks[:limit]


def level_of(score: float) -> int:
    """Strength of a pick's highlight, 1 to 8, by the root of its score.

    0.1 is already high for a sentence.
    """
    return min(LEVELS, max(1, round(LEVELS * math.sqrt(score))))


def _cut(breaks: Breaks, cursor: int, start: int, characters: int) -> int | None:
    """Return where to end a block of so many characters between two sentences.

    None if it continues.
    """
    if characters >= _BLOCK_CHARACTERS:
        place = breaks.text.find("\n", cursor, start)
        while place >= 0:
            if not breaks.is_soft(place):
                return place
            place = breaks.text.find("\n", place + 1, start)
    return start if characters >= _LONGEST_BLOCK_CHARACTERS else None
