"""The comparison as one self-contained HTML page: a column for each retriever, the same text in each.

The page loads nothing; its policy (CSP) allows its own style sheet and its own script, which moves from pick to
pick. All text of a document is escaped, and its control characters are written out.
"""

import html
from collections.abc import Iterator, Sequence

from spscanner_rag.comparison.columns import Columns
from spscanner_rag.comparison.retrievals import Pick, Retrievals
from spscanner_rag.files.documents import name_of
from spscanner_rag.views.escaping import escaped_line
from spscanner_rag.views.html_page import page_head, question_header, resource

QUOTE = 240  # characters of a pick in the list by rank


def render_comparisons(comparisons: Sequence[Retrievals]) -> str:
    """The page, as a string to be written in UTF-8, of at least one comparison.

    All have the same retrievers and question, and each has a document of its own.
    """
    style, script = (resource(__package__, name) for name in ("page.css", "page.js"))
    sections = (
        part
        for number, comparison in enumerate(comparisons, start=1)
        for part in _section(number, comparison, titled=len(comparisons) > 1)
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
    legend = ['<li><b class="rank">3</b><mark>a pick</mark> and its rank</li>']
    if len(comparisons[0].retrievals) > 1:
        legend.append('<li><b class="rank only">3 only</b><mark class="only">picked by no other</mark></li>')
    keys = {"j": "next pick", "k": "previous", "→": "next retriever", "←": "previous", "b": "its best"}
    if any(comparison.evidence for comparison in comparisons):
        legend.append('<li><span class="hit">evidence found</span></li>')
        legend.append('<li><span class="miss">evidence missed</span></li>')
        keys["m"] = "next missed evidence"
    shown_keys = "".join(f"<li><kbd>{key}</kbd> {meaning}</li>" for key, meaning in keys.items())
    facts = f"{characters:,} characters · {len(comparisons[0].retrievals)} retrievers"
    return (
        question_header(comparisons[0].query, f"{read} · {facts}" if read else facts)
        + f'<ul class="legend c1">{"".join(legend)}</ul>\n<ul class="keys">{shown_keys}</ul>\n</header>\n'
    )


def _section(number: int, comparison: Retrievals, titled: bool) -> Iterator[str]:
    columns = Columns(number, comparison)
    yield f'<section class="comparison n{len(comparison.retrievals)}" id="d{number}" data-here="1">\n'
    if titled:
        name = escaped_line(name_of(comparison.path))
        yield f"<h2>{name} <small>{len(comparison.text):,} characters</small></h2>\n"
    yield _table(comparison)
    yield _ranking(columns)
    lowest = columns.layout.lowest_rank
    if lowest is not None:
        yield f'<p class="note">Picks after rank {lowest} are on the strips only, to keep this page small.</p>\n'
    yield '<div class="heads">\n'
    for column, retrieval in enumerate(comparison.retrievals, start=1):
        name, picks = escaped_line(retrieval.name), len(retrieval.picks)
        yield (
            f'<div class="head c{column}"><button type="button" class="name" title="{name}">{name}</button>'
            f'<span class="at" aria-live="polite">{picks} pick{"" if picks == 1 else "s"}</span>'
            f"{columns.strip(column)}</div>\n"
        )
    yield '</div>\n<div class="rows">\n'
    yield from columns.rows()
    yield "</div>\n</section>\n"


def _table(comparison: Retrievals) -> str:
    several, known = len(comparison.retrievals) > 1, bool(comparison.evidence_sentences)
    heads = ["Retriever", "Picks", "of units"]
    heads += ["Only it"] * several + ["Evidence sentences found"] * known + ["Tokens", "Seconds"]
    rows = []
    for column, retrieval in enumerate(comparison.retrievals, start=1):
        found, total = sum(retrieval.found), len(retrieval.found)
        missed = f' <span class="missed">{total - found} missed</span>' if found < total else ""
        cells = [f"{len(retrieval.picks):,}", f"{retrieval.units:,}"]
        cells += [f"{retrieval.only:,}"] * several + [f"{found} of {total}{missed}"] * known
        cells += [f"{retrieval.tokens:,}", _seconds(retrieval.seconds)]
        rows.append(
            f'<tr class="c{column}"><th scope="row"><span class="dot"></span>{escaped_line(retrieval.name)}</th>'
            f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"
        )
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="table"><table><thead><tr>{columns}</tr></thead>\n<tbody>\n'
        f"{''.join(rows)}</tbody></table></div>\n"
        f'<p class="note">Tokens as counted by {escaped_line(comparison.counted_by)}, of all picks. '
        "Seconds to cut and score the document, models loaded.</p>\n"
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:,.1f}"


def _ranking(columns: Columns) -> str:
    lists = [
        f'<div class="c{column}"><h3>{escaped_line(retrieval.name)}</h3><ol>\n'
        f"{''.join(_item(columns, column, pick) for pick in retrieval.picks)}</ol></div>\n"
        for column, retrieval in enumerate(columns.comparison.retrievals, start=1)
    ]
    return (
        '<details class="ranking">\n<summary>Picks by rank</summary>\n'
        f'<div class="lists">\n{"".join(lists)}</div>\n</details>\n'
    )


def _item(columns: Columns, column: int, pick: Pick) -> str:
    line, place = columns.comparison.document.position(pick.start)
    text = columns.comparison.text[pick.start : min(pick.end, pick.start + QUOTE)]
    more = "…" if pick.end > pick.start + QUOTE else ""
    only = ' <span class="alone">only</span>' if pick.only else ""
    content = (
        f'<span class="facts"><b>{pick.rank}</b> {pick.score:.3f} · {line}:{place}{only}</span>'
        f'<span class="quote" dir="auto">{escaped_line(text)}{more}</span>'
    )
    link = columns.link(column, pick)
    return f'<li><a href="{link}">{content}</a></li>\n' if link else f"<li>{content}</li>\n"
