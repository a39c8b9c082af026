"""The HTML view: one self-contained page that opens at the best sentence, in the text of its document.

The page loads nothing; its policy (CSP) allows its own style sheet and its own script, which goes from pick to
pick. Without the script, its links still work. All text of a document is escaped, and its control characters are
written out.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.apps.pages.html_page import page_head, page_style, question_header, resource
from spscanner_rag.apps.pages.line_breaks import Breaks
from spscanner_rag.apps.pages.quotes import readable
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, compression_of
from spscanner_rag.apps.pages.score_strip import score_strip
from spscanner_rag.apps.pages.short_names import short_names
from spscanner_rag.files.documents import name_of
from spscanner_rag.text.escaping import escaped_line

LEVELS = 8
"""Strengths of a highlight."""

_BLOCK_CHARACTERS = 4_000  # a block is laid out only when it comes into view
_LONGEST_BLOCK_CHARACTERS = 64_000


class _Page(NamedTuple):
    best: float  # the highest score of any sentence
    first: float  # and of any pick
    picks: int
    names: Sequence[str]  # of the documents, escaped


def level_of(score: float, best: float) -> int:
    """Strength of a pick's highlight, 1 to 8, by its share of the best score on the page."""
    return min(LEVELS, max(1, round(LEVELS * score / max(best, 1e-12))))


def render_report(query: str, model: str, scanned: Sequence[ScannedDocument]) -> str:
    """The page for documents in the order given, as a string to be written in UTF-8.

    The list of the best sentences shows their picks; ``model`` is the source of the checkpoint.
    """
    style, script = report_style(), report_script()
    best = max((float(each.result.scores.max()) for each in scanned if len(each.result.scores)), default=0.0)
    parts = [page_head(query, style, script), "<body>\n", _header(query, model, scanned, best)]
    parts.append('<div class="columns">\n<nav aria-label="Best sentences">\n<details open>\n')
    parts.append(f"<summary>{_best_of(scanned)}</summary>\n")
    if len(scanned) > 1 and any(document.picks for document in scanned):
        parts.append("<p>The numbers are ranks over all documents.</p>\n")
    page = _Page(
        best,
        first=max((pick.score for each in scanned for pick in each.picks), default=0.0),
        picks=sum(len(each.picks) for each in scanned),
        names=list(map(escaped_line, short_names([each.document.path for each in scanned]))),
    )
    for number, document in enumerate(scanned, start=1):
        parts.append(_best_sentences(number, document, page))
    parts.append('</details>\n</nav>\n<main tabindex="-1">\n')
    for number, document in enumerate(scanned, start=1):
        parts.extend(_article(number, document, page))
    return "".join([*parts, f"</main>\n</div>\n<script>{script}</script>\n</body>\n</html>\n"])


def report_style() -> str:
    """The page's style sheet."""
    return page_style(__package__, "report.css")


def report_script() -> str:
    """The page's script."""
    return resource(__package__, "report.js")


def _best_of(scanned: Sequence[ScannedDocument]) -> str:
    picks = sum(len(document.picks) for document in scanned)
    return (
        "No best sentence"
        if not picks
        else f"The {picks:,} best sentences"
        if picks > 1
        else "The best sentence"
    )


def _model(source: str) -> str:
    return "the bundled one" if source == "default" else escaped_line(source)


def _path(scanned: ScannedDocument) -> str:
    return escaped_line(name_of(scanned.document.path))


def _header(query: str, model: str, scanned: Sequence[ScannedDocument], best: float) -> str:
    characters = sum(len(document.result.text) for document in scanned)
    sentences = sum(len(document.result.logits) for document in scanned)
    files_read = _path(scanned[0]) if len(scanned) == 1 else f"{len(scanned)} documents"
    facts = f"{files_read} · {characters:,} characters · {sentences:,} sentences"
    counted = compression_of(scanned)
    if counted is not None:
        share = f"{100 * counted.share:.1f} %"
        facts += f" · the best have {counted.kept:,} of {counted.read:,} tokens ({share})"
    swatches = "".join(f'<span class="s{level}"></span>' for level in range(1, LEVELS + 1))
    keys = "".join(
        f"<span><kbd>{key}</kbd> {name}</span>"
        for key, name in (("j", "next"), ("k", "previous"), ("b", "best"))
    )
    strip = ""
    if len(scanned) == 1:
        ends = "<span>start of the document</span><span>scores, and the best sentences</span><span>end</span>"
        strip = f'{score_strip(1, scanned[0], best)}<p class="ends">{ends}</p>\n'
    steps = _button(-1, "previous", "↑") + _button(1, "next", "↓")
    return (
        question_header(query, f"{facts} · model: {_model(model)}") + '</header>\n<div class="guide">\n'
        f'<p class="asked" dir="auto">{escaped_line(query)}</p>\n'
        f'<div class="bar">\n<span class="steps">{steps}</span>\n'
        f'<span class="at" aria-live="polite">{_best_of(scanned)}</span>\n'
        f'<span class="scale">score 0 {swatches} {best:.2f}</span>\n<span class="keys">{keys}</span>\n</div>\n'
        f"{strip}</div>\n"
    )


def _button(step: int, name: str, sign: str) -> str:
    return f'<button type="button" data-step="{step}" aria-label="{name} best sentence">{sign}</button>'


def _best_sentences(number: int, scanned: ScannedDocument, page: _Page) -> str:
    title = ""
    if len(page.names) > 1:
        title = f'<h2 title="{_path(scanned)}"><a href="#d{number}">{page.names[number - 1]}</a></h2>\n'
        title += score_strip(number, scanned, page.best)
    items = []
    for passage in scanned.picks:
        line, _ = scanned.document.position(passage.start)
        section = escaped_line(scanned.document.section(passage.start))
        place = f"{section} · line {line:,}" if section else f"line {line:,}"
        sentence = scanned.number(passage)
        whole = ' class="best"' if scanned.ranks[passage.start] == 1 else ""
        items.append(
            f'<li id="l{number}-{sentence}"{whole}><a href="#d{number}-{sentence}">'
            f'<span class="rank">{scanned.ranks[passage.start]}</span>'
            f'<span class="score">{passage.score:.3f}</span><span class="place">{place}</span>'
            f'<span class="quote" dir="auto">{escaped_line(readable(passage.text))}</span></a></li>\n'
        )
    return title + (f"<ol>\n{''.join(items)}</ol>\n" if items else "<p>No sentence was selected.</p>\n")


def _article(number: int, scanned: ScannedDocument, page: _Page) -> Iterator[str]:
    # Blocks end where a paragraph does; elsewhere only in a line that is far too long.
    text, result = scanned.document.text, scanned.result
    breaks = Breaks(text)
    yield (
        f'<article id="d{number}" data-characters="{len(text)}">\n<h2>{_path(scanned)}</h2>\n'
        '<div class="text" lang="" dir="auto"><div data-at="0">'
    )
    block = cursor = 0  # where the open block begins, and what is shown so far
    for start, end in zip(result.starts.tolist(), result.ends.tolist(), strict=True):
        cut = _cut(breaks, cursor, start, start - block)
        if cut is not None:  # the end of the block shows the line break at the cut
            after = cut + 1 if cut < start else cut
            yield f'{breaks.html(cursor, cut)}</div><div data-at="{after}">{breaks.html(after, start)}'
            block = after
        else:
            yield breaks.html(cursor, start)
        if start in scanned.ranks:
            yield _mark(number, scanned, start, breaks.html(start, end), page)
        else:
            yield breaks.html(start, end)
        cursor = end
    yield f"{breaks.html(cursor, len(text))}</div></div>\n</article>\n"


def _cut(breaks: Breaks, cursor: int, start: int, characters: int) -> int | None:
    """Where a block of so many characters ends, between one sentence and the next; None if it goes on."""
    if characters >= _BLOCK_CHARACTERS:
        place = breaks.text.find("\n", cursor, start)
        while place >= 0:
            if not breaks.is_soft(place):
                return place
            place = breaks.text.find("\n", place + 1, start)
    return start if characters >= _LONGEST_BLOCK_CHARACTERS else None


def _mark(number: int, scanned: ScannedDocument, start: int, content: str, page: _Page) -> str:
    sentence = int(scanned.result.starts.searchsorted(start))
    score, rank = float(scanned.result.scores[sentence]), scanned.ranks[start]
    line, _ = scanned.document.position(start)
    share = 100 * start / max(1, len(scanned.result.text))
    picks = len(scanned.picks) if scanned.ranks_of_all is None else page.picks
    place = f"{page.names[number - 1]}, line {line:,}" if len(page.names) > 1 else f"line {line:,}"
    facts = f"{rank} of {picks} · score {score:.3f} · {place} · {share:.0f} % into the document"
    opening = ' data-rank="1"' if score == page.first else ""
    return (
        f'<a class="back" href="#l{number}-{sentence}">{rank}</a><mark class="s{level_of(score, page.best)}" '
        f'id="d{number}-{sentence}"{opening} data-facts="{facts}" title="{score:.3f}">{content}</mark>'
    )
