"""The comparison as one self-contained HTML page, with a column for each retriever from top to bottom.

It begins with the best picks of each, goes on to what only one found, and ends with the text, the same in each
column. The page loads nothing; its policy (CSP) allows its own style sheet and its own script, which moves from
pick to pick. All text of a document is escaped, and its control characters are written out.
"""

import html
from collections.abc import Iterator, Sequence

from spscanner_rag.apps.compare.columns import Columns
from spscanner_rag.apps.compare.picks import best_picks, only_found, picks_by_rank
from spscanner_rag.apps.compare.retrievals import Retrievals
from spscanner_rag.apps.compare.verdict import leaders, verdict
from spscanner_rag.apps.pages.html_page import page_head, page_style, question_header, resource
from spscanner_rag.apps.pages.short_names import short_names
from spscanner_rag.files.documents import name_of
from spscanner_rag.text.escaping import escaped_line

BEST_BADGE = '<span class="leads" title="the most evidence, and the best rank of it">best</span>'


def render_comparisons(comparisons: Sequence[Retrievals]) -> str:
    """The page, as a string to be written in UTF-8, of at least one comparison.

    All have the same retrievers and question, and each has a document of its own.
    """
    style, script = page_style(__package__, "page.css"), resource(__package__, "page.js")
    first = next((column for comparison in comparisons for column in leaders(comparison)), 1)
    several = len(comparisons) > 1
    titles = short_names([comparison.path for comparison in comparisons]) if several else [None]
    sections = (
        part
        for number, (comparison, title) in enumerate(zip(comparisons, titles, strict=True), start=1)
        for part in _section(number, comparison, first, title)
    )
    return (
        f"{page_head(comparisons[0].query, style, script)}<body>\n{_header(comparisons)}<main>\n"
        f"{''.join(sections)}</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def framed(page: str) -> str:
    """A page in a frame, to be part of another page; the frame has no access to that page."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="Comparison of retrievers" '
        'width="100%" height="760" style="border: 1px solid #8886; border-radius: 8px"></iframe>'
    )


def _header(comparisons: Sequence[Retrievals]) -> str:
    characters = sum(len(comparison.text) for comparison in comparisons)
    read = escaped_line(name_of(comparisons[0].path))
    read = f"{len(comparisons)} documents" if len(comparisons) > 1 else read
    legend = ['<li class="wide"><b class="rank">3</b><mark>a pick</mark> and its rank</li>']
    if len(comparisons[0].retrievals) > 1:
        legend.append(
            '<li class="wide"><b class="rank only">3 only</b><mark class="only">picked by no other</mark></li>'
        )
    keys = {"j": "next pick", "k": "previous", "→": "next retriever", "←": "previous", "b": "its best"}
    if any(comparison.evidence for comparison in comparisons):
        legend.append('<li><span class="hit">evidence found</span></li>')
        legend.append('<li><span class="miss">evidence missed</span></li>')
        keys["m"] = "next missed evidence"
    legend.append(
        '<li class="strips">strips: the document from left to right, taller marks are better picks</li>'
    )
    if len(comparisons[0].retrievals) > 1:
        legend.append('<li class="wide">each retriever has its own scale of scores</li>')
    shown_keys = "".join(f"<li><kbd>{key}</kbd> {meaning}</li>" for key, meaning in keys.items())
    facts = f"{characters:,} characters · {len(comparisons[0].retrievals)} retrievers compared"
    return (
        question_header(comparisons[0].query, f"{read} · {facts}" if read else facts)
        + f'<ul class="legend c1">{"".join(legend)}</ul>\n<ul class="keys">{shown_keys}</ul>\n</header>\n'
    )


def _section(number: int, comparison: Retrievals, first: int, title: str | None) -> Iterator[str]:
    columns = Columns(number, comparison)
    labels, leading = columns.labels, leaders(comparison)
    yield f'<section class="comparison n{len(comparison.retrievals)}" id="d{number}" data-here="{first}">\n'
    if title is not None:
        yield f"<h2>{escaped_line(title)} <small>{len(comparison.text):,} characters</small></h2>\n"
    yield f'<p class="verdict">{escaped_line(verdict(comparison, labels))}</p>\n'
    yield '<div class="heads">\n'
    for column, (retrieval, label) in enumerate(zip(comparison.retrievals, labels, strict=True), start=1):
        name, picks = escaped_line(retrieval.name), len(retrieval.picks)
        yield (
            f'<div class="head c{column}"><button type="button" class="name" title="{name}">'
            f'<span class="dot"></span>{escaped_line(label)}</button>'
            f"{BEST_BADGE if column in leading else ''}"
            f'<span class="at" aria-live="polite">{picks} pick{"" if picks == 1 else "s"}</span>'
            f"{columns.strip(column)}</div>\n"
        )
    yield "</div>\n"
    yield best_picks(columns)
    yield only_found(columns)
    yield '<h3 class="part">Everything</h3>\n'
    yield _table(comparison, labels)
    yield picks_by_rank(columns)
    lowest = columns.layout.lowest_rank
    if lowest is not None:
        yield f'<p class="note">Picks after rank {lowest} are on the strips only, to keep this page small.</p>\n'
    yield '<div class="rows">\n'
    yield from columns.rows()
    yield "</div>\n</section>\n"


def _table(comparison: Retrievals, labels: Sequence[str]) -> str:
    several, known = len(comparison.retrievals) > 1, bool(comparison.evidence_sentences)
    heads = ["Picks", "of units", *["Only it"] * several, *["Evidence sentences found"] * known]
    heads += ["Tokens", "Seconds, first question", "Seconds, next question"]
    rows = []
    for column, (retrieval, label) in enumerate(zip(comparison.retrievals, labels, strict=True), start=1):
        found, total = sum(retrieval.found), len(retrieval.found)
        missed = f' <span class="missed">{total - found} missed</span>' if found < total else ""
        cells = [f"{len(retrieval.picks):,}", f"{retrieval.units:,}"]
        cells += [f"{retrieval.only:,}"] * several + [f"{found} of {total}{missed}"] * known
        cells += [f"{retrieval.tokens:,}", _seconds(retrieval.seconds), _seconds(retrieval.seconds_again)]
        described = "".join(
            f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads, cells, strict=True)
        )
        rows.append(
            f'<tr class="c{column}"><th scope="row" title="{escaped_line(retrieval.name)}">'
            f'<span class="dot"></span>{escaped_line(label)}</th>{described}</tr>\n'
        )
    columns = "".join(f'<th scope="col">{head}</th>' for head in ["Retriever", *heads])
    return (
        f'<div class="table"><table><thead><tr>{columns}</tr></thead>\n<tbody>\n'
        f"{''.join(rows)}</tbody></table></div>\n"
        f'<p class="note">Tokens as counted by {escaped_line(comparison.counted_by)}, of all picks. Seconds to '
        "cut and score the document, models loaded and warm: for the first question, and for one more on the same "
        "document, for which some retrievers keep vectors or an index.</p>\n"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.1f}"
