"""The result of an evaluation as one self-contained HTML page: tables, and plots without a script."""

from collections.abc import Iterator, Mapping, Sequence

from spscanner_rag.evaluation.report.plots import Line, legend, line_chart
from spscanner_rag.evaluation.report.result import RECALLS, Result, metrics_of, paired_tests
from spscanner_rag.evaluation.report.tables import Share, Table, interval, percent
from spscanner_rag.evaluation.run import POSITION_CUTOFFS
from spscanner_rag.evidence.metrics import CUTOFFS
from spscanner_rag.views.escaping import escaped_line
from spscanner_rag.views.html_page import page_head, resource

AVERAGED = [*RECALLS, ("ndcg", 10), ("success", 1), ("mrr", None)]
"""Metrics of the macro and micro tables."""


def render_page(result: Result, facts: Mapping[str, str]) -> str:
    """The page, as a string to be written in UTF-8; its head shows ``facts`` such as command, machine and date."""
    sources = len(result.sources)
    tables = [paired_tests(result.differences)] if result.differences else []
    parts = [
        page_head("Retrieval of evidence", resource(__package__, "page.css")),
        "<body>\n<header>\n<h1>Retrieval of evidence</h1>\n",
        *(f"<p>{escaped_line(name)}: {escaped_line(value)}</p>\n" for name, value in facts.items()),
        "</header>\n<main>\n<h2>All sources</h2>\n<p>Percent, with 95 % intervals. The best of each column is ",
        "marked, sentences and chunks apart. Macro: every source counts the same. Micro: every question does.",
        "</p>\n",
        *(
            _table(metrics_of(result, average, f"{average}, {sources} sources", AVERAGED), caption=True)
            for average in ("macro", "micro")
        ),
        *_charts(result),
        *(_table(table) for table in [*tables, *result.tables]),
        "<h2>By source</h2>\n",
        *(_source_table(result, source) for source in result.sources),
        "</main>\n</body>\n</html>\n",
    ]
    return "".join(parts)


def _source_table(result: Result, source: str) -> str:
    row = next(row for row in result.rows if row["source"] == source)
    title = f"{source} {row['split']}: {row['questions']:,} questions on {row['documents']:,} documents"
    return _table(metrics_of(result, source, title), caption=True)


def _table(table: Table, caption: bool = False) -> str:
    head = "".join(f'<th scope="col">{escaped_line(name)}</th>' for name in table.head)
    body = "".join(
        f'<tr><th scope="row">{escaped_line(str(name))}</th>'
        + "".join(_cell(cell, (line, column) in table.best) for column, cell in enumerate(cells, start=1))
        + "</tr>\n"
        for line, (name, *cells) in enumerate(table.body)
    )
    title, about = escaped_line(table.title), escaped_line(table.about)
    above = "" if caption else f"<h2>{title}</h2>\n<p>{about}</p>\n"
    inside = f"<caption>{title}</caption>\n" if caption else ""
    content = f"{inside}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'{above}<div class="table"><table>{content}</table></div>\n'


def _cell(cell: str | Share, best: bool) -> str:
    if isinstance(cell, str):
        return f"<td>{escaped_line(cell)}</td>"
    mark = ' class="best"' if best else ""
    small = f"<br><small>{interval(cell)}</small>" if interval(cell) else ""
    return f"<td{mark}>{percent(cell)}{small}</td>"


def _charts(result: Result) -> Iterator[str]:
    budgets = sorted({row["k"] or 0 for row in result.rows if row["metric"] == "recall_at_tokens"})
    lengths = sorted({row["k"] or 0 for row in result.rows if row["metric"] == "recall_by_length"})
    yield f"<h2>Plots</h2>\n{legend([setting.label for setting in result.settings])}\n"
    yield '<div class="charts">\n'
    yield _figure(result, "Recall at k", "best k units", "recall", CUTOFFS)
    yield _figure(
        result, "Recall at equal tokens", "tokens that may be retrieved", "recall_at_tokens", budgets
    )
    yield _figure(
        result,
        "Recall by place of the evidence",
        "tenth of the document; the best 50 sentences, or 5 chunks",
        "recall_by_position",
        range(1, 11),
    )
    yield _figure(
        result, "Recall@10 by length of the document", "characters, from", "recall_by_length", lengths
    )
    yield "</div>\n<p>Macro means over the sources that have questions there; bars are 95 % intervals.</p>\n"


def _figure(result: Result, title: str, x_label: str, metric: str, ticks: Sequence[int]) -> str:
    lines = []
    for setting in result.settings:
        name = metric
        if metric == "recall_by_position":
            name += f"@{POSITION_CUTOFFS.get(setting.unit, (10,))[-1]}"
        lines.append(Line(setting.label, [result.find(setting, name, tick, "macro") for tick in ticks]))
    chart = line_chart(title, x_label, [f"{tick:,}" for tick in ticks], lines)
    return f"<figure><h3>{title}</h3>{chart}</figure>\n"
