"""The HTML view: one self-contained page with every sentence shaded by its score.

The page has no script and loads nothing; its policy (CSP) allows its own style sheet only. All text of a
document is escaped, and its control characters are written out.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.files.documents import name_of
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.views.escaping import escaped, escaped_line
from spscanner_rag.views.html_page import page_head, question_header, resource
from spscanner_rag.views.scanned_document import ScannedDocument

LEVELS = 8  # shades, not counting unshaded
_BLOCK_CHARACTERS = 4_000  # a block is laid out only when it comes into view
_LONGEST_BLOCK_CHARACTERS = 64_000


class Shading:
    """Maps logits to shades, from the median of all sentences (none) to the best (the strongest).

    Shades are relative, because the scores of a checkpoint may cover only a part of 0 to 1.
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
        """The score in the middle of each shade from 1 to 8."""
        steps = np.arange(1, LEVELS + 1) / LEVELS
        scores: list[float] = sigmoid(self.median + steps * (self.best - self.median)).tolist()
        return scores


def render_report(query: str, model: str, scanned: Sequence[ScannedDocument]) -> str:
    """The page for documents in the order given, as a string to be written in UTF-8.

    The list of the best sentences shows their picks; ``model`` is the source of the checkpoint.
    """
    shading = Shading([document.result.logits for document in scanned])
    parts = [
        page_head(query, resource(__package__, "report.css")),
        "<body>\n",
        _header(query, model, scanned, shading),
        '<div class="columns">\n<nav aria-label="Best sentences">\n<details open>\n'
        "<summary>Best sentences</summary>\n",
    ]
    for number, document in enumerate(scanned, start=1):
        parts.append(_best_sentences(number, document, titled=len(scanned) > 1))
    parts.append("</details>\n</nav>\n<main>\n")
    for number, document in enumerate(scanned, start=1):
        parts.extend(_article(number, document, shading))
    return "".join([*parts, "</main>\n</div>\n</body>\n</html>\n"])


def _name(scanned: ScannedDocument) -> str:
    return escaped_line(name_of(scanned.document.path))


def _header(query: str, model: str, scanned: Sequence[ScannedDocument], shading: Shading) -> str:
    characters = sum(len(document.result.text) for document in scanned)
    sentences = sum(len(document.result.logits) for document in scanned)
    files_read = _name(scanned[0]) if len(scanned) == 1 else f"{len(scanned)} documents"
    facts = f"{files_read} · {characters:,} characters · {sentences:,} sentences"
    swatches = "".join(
        f'<span class="s{level}">{score:.2f}</span>' for level, score in enumerate(shading.scores(), start=1)
    )
    return (
        question_header(query, f"{facts} · checkpoint {escaped_line(model)}")
        + f'<p class="legend">Score <span class="scale">{swatches}</span></p>\n</header>\n'
    )


def _best_sentences(number: int, scanned: ScannedDocument, titled: bool) -> str:
    title = f'<h2><a href="#d{number}">{_name(scanned)}</a></h2>\n' if titled else ""
    items = []
    for passage in scanned.picks:
        line, column = scanned.document.position(passage.start)
        sentence = scanned.number(passage)
        items.append(
            f'<li id="l{number}-{sentence}"><a href="#d{number}-{sentence}">'
            f'<span class="rank">{scanned.ranks[passage.start]}</span>'
            f'<span class="score">{passage.score:.3f}</span><span class="place">{line}:{column}</span>'
            f'<span class="quote" dir="auto">{escaped_line(passage.text)}</span></a></li>\n'
        )
    return title + (f"<ol>\n{''.join(items)}</ol>\n" if items else "<p>No sentence was selected.</p>\n")


def _article(number: int, scanned: ScannedDocument, shading: Shading) -> Iterator[str]:
    # Blocks end at line breaks of the document; elsewhere only in a line that is far too long.
    yield f'<article id="d{number}">\n<h2>{_name(scanned)}</h2>\n<div class="text" lang="" dir="auto"><div>'
    text = scanned.document.text
    block = cursor = 0  # characters in the open block, and shown so far
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
    """The span of each sentence and its HTML; a sentence without a shade has no element."""
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
