"""The picks of a comparison as lists: the best of each retriever, what only one found, and all by rank."""

from collections.abc import Callable

from spscanner_rag.apps.compare.columns import Columns
from spscanner_rag.apps.compare.retrievals import Pick
from spscanner_rag.apps.pages.quotes import readable
from spscanner_rag.text.escaping import escaped_line

BEST = 3
"""Picks of each retriever that the page begins with."""

QUOTE = 240  # characters of a pick in the list by rank
LONG_QUOTE = 600  # characters of a pick among the best
MOST_ONLY = 10  # picks that no other found, of each retriever


def best_picks(columns: Columns) -> str:
    """The best picks side by side: a row for each rank, a column for each retriever."""
    cells = []
    for rank in range(BEST):
        for column, retrieval in enumerate(columns.comparison.retrievals, start=1):
            if rank < len(retrieval.picks):
                pick = retrieval.picks[rank]
                who = f'<p class="who">{escaped_line(columns.labels[column - 1])}</p>'
                only = " only" if pick.only else ""
                content = _linked(columns, column, pick, LONG_QUOTE)
                cells.append(f'<div class="card c{column}{only}">{who}{content}</div>\n')
            else:
                cells.append(f'<div class="card none c{column}"></div>\n')
    return f'<h3 class="part">The best {BEST} of each</h3>\n<div class="best">\n{"".join(cells)}</div>\n'


def only_found(columns: Columns) -> str:
    """What only one retriever found, in a column for each; empty for a single retriever."""
    retrievals = columns.comparison.retrievals
    if len(retrievals) < 2:
        return ""
    lists = _lists(columns, lambda pick: pick.only, MOST_ONLY, "Nothing that no other found.")
    return f'<h3 class="part">What only one retriever found</h3>\n<div class="lists">\n{lists}</div>\n'


def picks_by_rank(columns: Columns) -> str:
    """All picks by rank, to unfold."""
    lists = _lists(columns, lambda pick: True, None, "No picks.")
    return (
        '<details class="ranking">\n<summary>All picks by rank</summary>\n'
        f'<div class="lists">\n{lists}</div>\n</details>\n'
    )


def _lists(
    columns: Columns,
    wanted: Callable[[Pick], bool],
    most: int | None,
    otherwise: str,
) -> str:
    lists = []
    for column, retrieval in enumerate(columns.comparison.retrievals, start=1):
        picks = [pick for pick in retrieval.picks if wanted(pick)]
        items = "".join(f"<li>{_linked(columns, column, pick, QUOTE)}</li>\n" for pick in picks[:most])
        further = len(picks) - len(picks[:most])
        more = f'<p class="note">and {further:,} more, marked in the text below</p>' if further else ""
        content = f"<ol>\n{items}</ol>{more}" if picks else f'<p class="note">{otherwise}</p>'
        who = f'<p class="who">{escaped_line(columns.labels[column - 1])}</p>'
        lists.append(f'<div class="c{column}">{who}{content}</div>\n')
    return "".join(lists)


def _linked(columns: Columns, column: int, pick: Pick, characters: int) -> str:
    """Rank, score, place and words of a pick, as a link into the text if it is shown there."""
    comparison = columns.comparison
    line, _ = comparison.document.position(pick.start)
    section = escaped_line(comparison.document.section(pick.start))
    place = f"{section}, line {line:,}" if section else f"line {line:,}"
    place += f" · at {100 * pick.start / max(1, len(comparison.text)):.0f} %"
    text = comparison.text[pick.start : min(pick.end, pick.start + characters)]
    more = "…" if pick.end > pick.start + characters else ""
    badges = '<span class="alone">no other found it</span>' if pick.only else ""
    if any(start < pick.end and end > pick.start for start, end in comparison.evidence):
        badges += '<span class="proof">evidence</span>'
    content = (
        f'<span class="facts"><b>{pick.rank}</b> {pick.score:.3f} · {place}{badges}</span>'
        f'<span class="quote" dir="auto">{escaped_line(readable(text))}{more}</span>'
    )
    link = columns.link(column, pick)
    return f'<a href="{link}">{content}</a>' if link else f"<div>{content}</div>"
