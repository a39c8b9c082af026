"""The HTML view: one self-contained page with every sentence shaded by its score.

The page has no script and loads nothing; its policy (CSP) allows its own style sheet only. All text of a
document is escaped, and its control characters are written out.
"""

import html
from collections.abc import Iterator, Sequence
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.documents import STANDARD_INPUT
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.views.escaping import escaped, one_line
from spscanner_rag.views.html_page import page_head
from spscanner_rag.views.scanned_document import ScannedDocument

LEVELS = 8  # shades, beside none
_BLOCK_CHARACTERS = 4_000  # a block is laid out only when it comes into view
_LONGEST_BLOCK_CHARACTERS = 64_000


class Shading:
    """Maps logits to shades, from the median of all sentences (none) to the best (the strongest).

    Relative to the documents, because scores of a checkpoint need not spread over 0 to 1.
    """

    def __init__(self, results: Sequence[NDArray[np.float32]]) -> None:
        logits = np.concatenate([*results, np.zeros(0, dtype=np.float32)]).astype(np.float64)
        self.median = float(np.median(logits)) if len(logits) else 0.0
        self.best = float(logits.max()) if len(logits) else 0.0

    def levels(self, logits: NDArray[np.float32]) -> NDArray[np.int64]:
        """Shade of each sentence, 0 (none) to 8, shape ``(n,)``."""
        if self.best <= self.median:
            return np.zeros(len(logits), dtype=np.int64)
        share = (logits.astype(np.float64) - self.median) / (self.best - self.median)
        return np.clip(np.round(share * LEVELS), 0, LEVELS).astype(np.int64)

    def scores(self) -> list[float]:
        """Return the score in the middle of each shade from 1 to 8."""
        steps = np.arange(1, LEVELS + 1) / LEVELS
        middles = self.median + steps * (self.best - self.median)
        scores: list[float] = sigmoid(middles).tolist()
        return scores


def render_report(query: str, model: str, scanned: Sequence[ScannedDocument]) -> str:
    """Return the page, as a string to be written in UTF-8.

    Parameters
    ----------
    query
        The question that was asked.
    model
        Where the checkpoint came from.
    scanned
        The documents in the order in which they are shown; their picks make the list of the best.
    """
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    shading = Shading([document.result.logits for document in scanned])
    parts = [
        page_head(query, style),
        "<body>\n",
        _header(query, model, scanned, shading),
        '<div class="columns">\n',
    ]
    parts.append('<nav aria-label="Best sentences">\n<details open>\n<summary>Best sentences</summary>\n')
    for number, document in enumerate(scanned, start=1):
        parts.append(_best_sentences(number, document, titled=len(scanned) > 1))
    parts.append("</details>\n</nav>\n<main>\n")
    for number, document in enumerate(scanned, start=1):
        parts.extend(_article(number, document, shading))
    parts.append("</main>\n</div>\n</body>\n</html>\n")
    return "".join(parts)


def _name(scanned: ScannedDocument) -> str:
    path = scanned.document.path
    return "standard input" if path == STANDARD_INPUT else html.escape(one_line(path))


def _header(query: str, model: str, scanned: Sequence[ScannedDocument], shading: Shading) -> str:
    characters = sum(len(document.result.text) for document in scanned)
    sentences = sum(len(document.result.logits) for document in scanned)
    files_read = _name(scanned[0]) if len(scanned) == 1 else f"{len(scanned)} documents"
    facts = f"{files_read} · {characters:,} characters · {sentences:,} sentences"
    swatches = "".join(
        f'<span class="s{level}">{score:.2f}</span>' for level, score in enumerate(shading.scores(), start=1)
    )
    return (
        f'<header>\n<p class="label">Question</p>\n<h1 dir="auto">{escaped(query)}</h1>\n'
        f'<p class="facts">{facts} · checkpoint {html.escape(one_line(model))}</p>\n'
        f'<p class="legend">Score <span class="scale">{swatches}</span></p>\n</header>\n'
    )


def _best_sentences(number: int, scanned: ScannedDocument, titled: bool) -> str:
    ranks = scanned.ranks
    parts = [f'<h2><a href="#d{number}">{_name(scanned)}</a></h2>\n'] if titled else []
    parts.append("<ol>\n" if scanned.picks else "<p>No sentence was selected.</p>\n")
    for passage in scanned.picks:
        line, column = scanned.document.position(passage.start)
        sentence = scanned.number(passage)
        parts.append(
            f'<li id="l{number}-{sentence}"><a href="#d{number}-{sentence}">'
            f'<span class="rank">{ranks[passage.start]}</span><span class="score">{passage.score:.3f}</span>'
            f'<span class="place">{line}:{column}</span>'
            f'<span class="quote" dir="auto">{html.escape(one_line(passage.text))}</span></a></li>\n'
        )
    parts.append("</ol>\n" if scanned.picks else "")
    return "".join(parts)


def _article(number: int, scanned: ScannedDocument, shading: Shading) -> Iterator[str]:
    # Blocks end at line breaks of the document; elsewhere only in a line that is far too long.
    yield f'<article id="d{number}">\n<h2>{_name(scanned)}</h2>\n<div class="text" lang="" dir="auto">'
    text = scanned.document.text
    block = 0  # characters in the open block
    yield "<div>"
    cursor = 0
    for start, end, marked in _marked_sentences(number, scanned, shading):
        gap = text[cursor:start].replace("\r\n", "\n")
        before, after = gap, None
        if block >= _BLOCK_CHARACTERS and "\n" in gap:
            before, _, after = gap.partition("\n")  # the end of the block shows this line break
        elif block >= _LONGEST_BLOCK_CHARACTERS:
            after = ""
        yield escaped(before)
        if after is not None:
            yield f"</div><div>{escaped(after)}"
            block = 0
        yield marked
        block += end - cursor
        cursor = end
    yield f"{escaped(text[cursor:])}</div></div>\n</article>\n"


def _marked_sentences(
    number: int, scanned: ScannedDocument, shading: Shading
) -> Iterator[tuple[int, int, str]]:
    """Yield the span of each sentence and its HTML; a sentence without a shade has no element."""
    result, ranks = scanned.result, scanned.ranks
    values = zip(shading.levels(result.logits).tolist(), result.scores.tolist(), strict=True)
    spans = zip(result.starts.tolist(), result.ends.tolist(), strict=True)
    for sentence, ((start, end), (level, score)) in enumerate(zip(spans, values, strict=True)):
        content = escaped(result.text[start:end])
        if start in ranks:
            content = (
                f'<a class="back" href="#l{number}-{sentence}">{ranks[start]}</a>'
                f'<mark class="s{level}" id="d{number}-{sentence}" title="{score:.3f}">{content}</mark>'
            )
        elif level:
            content = f'<span class="s{level}" title="{score:.3f}">{content}</span>'
        yield start, end, content
