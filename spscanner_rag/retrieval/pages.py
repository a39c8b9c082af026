"""Join the pages of one document, without running lines, so that a sentence over a page break is one sentence."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.retrieval.joined_text import CONTINUED, RUN_SEPARATOR, JoinedText, Placed, Run
from spscanner_rag.text.pages import page_bodies, sentence_goes_on


class Page(NamedTuple):
    """The text of a page, or of those chunks of it that are at hand."""

    joined: JoinedText
    number: float | None  # its page number; None if unknown
    whole: bool  # whether all of its text is there, as one run


class _Body(NamedTuple):
    """What is read of a page."""

    start: int
    end: int
    continues: bool = False  # whether it continues the sentence of the page before


def join_pages(pages: Sequence[Page]) -> JoinedText:
    """Join pages in order, without running headers and footers; a whole page may continue the one before."""
    text: list[str] = []
    runs: list[Run] = []
    placed: list[Placed] = []
    length = 0
    for page, body in zip(pages, _bodies(pages), strict=True):
        if length and body.end > body.start:
            separator = CONTINUED if body.continues else RUN_SEPARATOR
            text.append(separator)
            length += len(separator)
        text.append(page.joined.text[body.start : body.end])
        runs += _moved_runs(page.joined.runs, body, length)
        placed += _moved_pieces(page.joined, body, length)
        length += body.end - body.start
    return JoinedText("".join(text), tuple(runs), tuple(placed))


def _bodies(pages: Sequence[Page]) -> list[_Body]:
    bodies = [_Body(0, len(page.joined.text)) for page in pages]
    whole = {number: page for number, page in enumerate(pages) if page.whole}
    texts = [page.joined.text for page in whole.values()]
    numbers = [float(n) if page.number is None else page.number for n, page in whole.items()]
    for number, span in zip(whole, page_bodies(texts, numbers), strict=True):
        bodies[number] = _Body(*span)
    known = {number: page.number for number, page in whole.items() if page.number is not None}
    for number in known:
        if number - 1 not in known or known[number] - known[number - 1] != 1:
            continue  # not known to come directly after the one before
        before, after = bodies[number - 1], bodies[number]
        text_before = pages[number - 1].joined.text[before.start : before.end]
        text_after = pages[number].joined.text[after.start : after.end]
        if sentence_goes_on(text_before, text_after):
            bodies[number - 1] = before._replace(end=before.start + len(text_before.rstrip()))
            start = after.end - len(text_after.lstrip())
            bodies[number] = after._replace(start=start, continues=True)
    return bodies


def _moved_runs(runs: Sequence[Run], body: _Body, start: int) -> Iterator[Run]:
    """The parts of runs inside a body that begins at ``start`` in the joined text."""
    shift = start - body.start
    for run in runs:
        first, last = max(run.start, body.start), min(run.end, body.end)
        if first < last:
            source_start = None if run.source_start is None else run.source_start + first - run.start
            continues = run.continues or (body.continues and first == body.start)
            yield Run(first + shift, last + shift, run.source, source_start, continues)


def _moved_pieces(joined: JoinedText, body: _Body, start: int) -> Iterator[Placed]:
    shift = start - body.start
    for piece in joined.placed:
        first, last = max(piece.start, body.start), min(piece.end, body.end)
        if first < last:
            left_out = joined.text[piece.start : first]
            offset = piece.offset + (len(left_out) if piece.exact else len("".join(left_out.split())))
            yield piece._replace(start=first + shift, end=last + shift, offset=offset)
