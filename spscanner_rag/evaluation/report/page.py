"""The result of an evaluation as one self-contained HTML page: tables, and plots without a script."""

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from spscanner_rag.evaluation.report.plots import Line, legend, line_chart
from spscanner_rag.evaluation.report.sections import Section
from spscanner_rag.evaluation.report.table import LENGTH_EDGES, Index, Row, index_of, sources_of
from spscanner_rag.evaluation.run import Setting
from spscanner_rag.evidence.metrics import CUTOFFS
from spscanner_rag.views.html_page import page_head


def render_page(
    rows: Sequence[Row],
    differences: Sequence[Mapping[str, object]],
    settings: Sequence[Setting],
    facts: Mapping[str, str],
    sections: Sequence[Section] = (),
) -> str:
    """The page, as a string to be written in UTF-8.

    Parameters
    ----------
    rows, differences
        From `rows_of` and `differences_of`.
    settings
        In the order of the tables.
    facts
        What to say about the run: command, machine, date and the like.
    sections
        Further tables.
    """
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    index, sources = index_of(rows), sources_of(rows)
    parts = [
        page_head("Retrieval of evidence", style),
        "<body>\n<header>\n<h1>Retrieval of evidence</h1>\n",
        *(f"<p>{html.escape(name)}: {html.escape(value)}</p>\n" for name, value in facts.items()),
        "</header>\n<main>\n",
        *_macro_tables(index, settings, len(sources)),
        *_charts(index, settings),
        *_differences(differences),
        *(part for section in sections for part in _section(section)),
        "<h2>By source</h2>\n",
        *(part for source in sources for part in _source_table(index, settings, source)),
        "</main>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _macro_tables(index: Index, settings: Sequence[Setting], sources: int) -> Iterator[str]:
    yield "<h2>All sources</h2>\n<p>Percent, with 95% intervals. The best of each column is marked, sentences and "
    yield "chunks apart. Macro: every source counts the same. Micro: every question does.</p>\n"
    for average in ("macro", "micro"):
        yield _table(
            index,
            settings,
            average,
            f"{average}, {sources} sources",
            [
                *(("recall", k) for k in CUTOFFS),
                ("ndcg", 10),
                ("success", 1),
                ("mrr", None),
            ],
        )


def _source_table(index: Index, settings: Sequence[Setting], source: str) -> Iterator[str]:
    row = next(row for key, row in index.items() if key[-1] == source)
    about = f"{source} {row['split']}: {row['questions']:,} questions on {row['documents']:,} documents"
    yield _table(
        index, settings, source, about, [*(("recall", k) for k in CUTOFFS), ("ndcg", 10), ("mrr", None)]
    )


def _table(
    index: Index,
    settings: Sequence[Setting],
    source: str,
    caption: str,
    columns: Sequence[tuple[str, int | None]],
) -> str:
    cells = [[index.get((*setting, metric, k, source)) for metric, k in columns] for setting in settings]
    best = {
        unit: [
            _highest(line[i] for setting, line in zip(settings, cells, strict=True) if setting.unit == unit)
            for i in range(len(columns))
        ]
        for unit in {setting.unit for setting in settings}  # ten chunks are many times ten sentences
    }
    head = "".join(f'<th scope="col">{metric}{"" if k is None else f"@{k}"}</th>' for metric, k in columns)
    body = "".join(
        f'<tr><th scope="row">{html.escape(setting.label)}</th>'
        + "".join(_cell(row, top) for row, top in zip(line, best[setting.unit], strict=True))
        + _costs(index, setting, source)
        + "</tr>\n"
        for setting, line in zip(settings, cells, strict=True)
        if any(line)
    )
    return (
        f'<div class="table"><table><caption>{html.escape(caption)}</caption>\n'
        f'<thead><tr><th scope="col">retriever</th>{head}<th scope="col">tokens at 5 / 50</th>'
        f'<th scope="col">seconds</th></tr></thead>\n<tbody>{body}</tbody></table></div>\n'
    )


def _highest(rows: Iterable[Row | None]) -> float | None:
    return max((row["value"] for row in rows if row is not None), default=None)


def _cell(row: Row | None, best: float | None) -> str:
    if row is None:
        return "<td>–</td>"  # noqa: RUF001
    mark = ' class="best"' if row["value"] == best else ""
    interval = ""
    if row["ci_low"] is not None and row["ci_high"] is not None:
        interval = f"<br><small>{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f}</small>"
    return f"<td{mark}>{100 * row['value']:.1f}{interval}</td>"


def _costs(index: Index, setting: Setting, source: str) -> str:
    five, fifty, seconds = (
        index.get((*setting, *column, source))
        for column in (("tokens", 5), ("tokens", 50), ("seconds", None))
    )
    tokens = " / ".join("–" if row is None else f"{row['value']:,.0f}" for row in (five, fifty))  # noqa: RUF001
    return f"<td>{tokens}</td><td>{'–' if seconds is None else format(seconds['value'], '.2f')}</td>"  # noqa: RUF001


def _charts(index: Index, settings: Sequence[Setting]) -> Iterator[str]:
    budgets = sorted({key[3] for key in index if key[2] == "recall_at_tokens" and key[3] is not None})
    lengths = [low for low in LENGTH_EDGES if any(k[2:4] == ("recall_by_length", low) for k in index)]
    yield f"<h2>Plots</h2>\n{legend([setting.label for setting in settings])}\n"
    yield '<div class="charts">\n'
    yield _figure(
        "Recall at k", "best k units", [str(k) for k in CUTOFFS], _lines(index, settings, "recall", CUTOFFS)
    )
    yield _figure(
        "Recall at equal tokens",
        "tokens that may be retrieved",
        [f"{budget:,}" for budget in budgets],
        _lines(index, settings, "recall_at_tokens", budgets),
    )
    tenths = range(1, 11)
    yield _figure(
        "Recall by place of the evidence",
        "tenth of the document; the best 50 sentences, or 5 chunks",
        [str(tenth) for tenth in tenths],
        _lines(index, settings, "recall_by_position", tenths),
    )
    yield _figure(
        "Recall@10 by length of the document",
        "characters, from",
        [f"{low:,}" for low in lengths],
        _lines(index, settings, "recall_by_length", lengths),
    )
    yield "</div>\n<p>Macro means over the sources that have questions there; bars are 95% intervals.</p>\n"


def _lines(index: Index, settings: Sequence[Setting], metric: str, ticks: Sequence[int | None]) -> list[Line]:
    lines = []
    for setting in settings:
        name = metric
        if metric == "recall_by_position":
            name = f"{metric}@{5 if setting.unit == 'chunk' else 50 if setting.unit == 'sentence' else 10}"
        rows = [index.get((*setting, name, tick, "macro")) for tick in ticks]
        ranges = [
            None
            if row is None or row["ci_low"] is None or row["ci_high"] is None
            else (row["ci_low"], row["ci_high"])
            for row in rows
        ]
        lines.append(Line(setting.label, [row and row["value"] for row in rows], ranges))
    return lines


def _figure(title: str, x_label: str, ticks: Sequence[str], lines: Sequence[Line]) -> str:
    return f"<figure><h3>{title}</h3>{line_chart(title, x_label, ticks, lines)}</figure>\n"


def _differences(differences: Sequence[Mapping[str, object]]) -> Iterator[str]:
    if not differences:
        return
    body = [
        (
            f"{found['first']} minus {found['second']}",
            str(found["metric"]),
            _points(found["difference"]),
            f"{_points(found['ci_low'])} to {_points(found['ci_high'])}",
            f"{float(str(found['p_value'])):.4f}",
        )
        for found in differences
    ]
    about = "Sign-flip test over documents, macro means, percentage points."
    heads = ("retrievers", "metric", "difference", "95% interval", "p")
    yield from _section(Section("Differences", about, heads, body))


def _section(section: Section) -> Iterator[str]:
    yield f"<h2>{html.escape(section.title)}</h2>\n<p>{html.escape(section.about)}</p>\n"
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in section.head)
    yield f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>'
    for name, *cells in section.body:
        told = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        yield f'<tr><th scope="row">{html.escape(name)}</th>{told}</tr>\n'
    yield "</tbody></table></div>\n"


def _points(share: object) -> str:
    return "?" if share is None else f"{100 * float(str(share)):+.1f}"
