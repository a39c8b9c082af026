"""Joins the texts of several sources, such as the pages of a file, to one text."""

from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.retrieval.joined_text import (
    RUN_SEPARATOR,
    JoinedText,
    Placed,
    Run,
)
from spscanner_rag.text.pages import page_bodies, sentence_goes_on

# before a run that continues the sentence of the previous run, as on the next page
CONTINUED = "\n"


class SourceText(NamedTuple):
    """The text of one source, or of its available chunks."""

    joined: JoinedText
    number: float | None = None  # its page number; None if unknown
    page: bool = False  # whether it is a page with all of its text, as one run


class Body(NamedTuple):
    """The span of a source's text that is joined."""

    start: int
    end: int
    continues: bool = False  # whether it continues the sentence of the previous page


def join_sources(sources: Sequence[SourceText]) -> JoinedText:
    """Join sources in order, without running headers and footers of pages.

    A page may continue the previous one.
    """
    if len(sources) == 1:
        return sources[0].joined
    strings: list[str] = []
    runs: list[Run] = []
    placed: list[Placed] = []
    length = 0
    for source, body in zip(sources, _bodies(sources), strict=True):
        if length and body.end > body.start:
            separator = CONTINUED if body.continues else RUN_SEPARATOR
            strings.append(separator)
            length += len(separator)
        runs += _moved_runs(source.joined, body, length)
        placed += _moved_pieces(source.joined, body, length)
        strings.append(source.joined.text[body.start : body.end])
        length += body.end - body.start
    return JoinedText("".join(strings), tuple(runs), tuple(placed))


def _moved_runs(joined: JoinedText, body: Body, new_start: int) -> list[Run]:
    """The runs inside a body that begins at ``new_start``."""
    shift = new_start - body.start
    runs = []
    for run in joined.runs:
        first = max(run.start, body.start)
        last = min(run.end, body.end)
        if first < last:
            source_start, _ = run.source_span(first, last)
            continues = body.continues and first == body.start
            span = (first + shift, last + shift)
            runs.append(Run(*span, run.source, source_start, continues))
    return runs


def _moved_pieces(joined: JoinedText, body: Body, new_start: int) -> list[Placed]:
    """The pieces inside a body that begins at ``new_start``."""
    shift = new_start - body.start
    moved = []
    for placed in joined.placed:
        first = max(placed.start, body.start)
        last = min(placed.end, body.end)
        if first < last:
            left_out = joined.text[placed.start : first]
            if not placed.exact:
                left_out = "".join(left_out.split())
            moved.append(
                Placed(
                    start=first + shift,
                    end=last + shift,
                    number=placed.number,
                    exact=placed.exact,
                    anchored=placed.anchored,
                    offset=placed.offset + len(left_out),
                )
            )
    return moved


def _bodies(sources: Sequence[SourceText]) -> list[Body]:
    """The body of each source.

    A page that runs on ends and begins without a gap.
    """
    bodies = [Body(0, len(source.joined.text)) for source in sources]
    pages = [number for number, source in enumerate(sources) if source.page]
    page_texts = [sources[number].joined.text for number in pages]
    page_numbers = []
    for number in pages:
        page_number = sources[number].number
        if page_number is None:
            page_number = float(number)
        page_numbers.append(page_number)
    spans = page_bodies(page_texts, page_numbers)
    for number, (start, end) in zip(pages, spans, strict=True):
        bodies[number] = Body(start, end)
    for number in pages:
        if _follows_directly(sources, number):
            _run_on(sources, bodies, number)
    return bodies


def _follows_directly(sources: Sequence[SourceText], number: int) -> bool:
    """Whether a page is known to follow the source before it directly."""
    if number == 0 or not sources[number - 1].page:
        return False
    page_number = sources[number].number
    number_before = sources[number - 1].number
    if page_number is None or number_before is None:
        return False
    return page_number - number_before == 1


def _run_on(sources: Sequence[SourceText], bodies: list[Body], number: int) -> None:
    """Let a page's body continue the one before it, if a sentence goes on there."""
    before = bodies[number - 1]
    body = bodies[number]
    text_before = sources[number - 1].joined.text[before.start : before.end]
    text = sources[number].joined.text[body.start : body.end]
    if sentence_goes_on(text_before, text):
        end_before = before.start + len(text_before.rstrip())
        bodies[number - 1] = Body(before.start, end_before, before.continues)
        bodies[number] = Body(body.end - len(text.lstrip()), body.end, continues=True)
