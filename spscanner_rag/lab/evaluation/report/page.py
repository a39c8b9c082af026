"""The result of an evaluation as one self-contained HTML page: tables, and plots without a script."""

from collections.abc import Iterator, Mapping, Sequence

from spscanner_rag.apps.pages.html_page import page_head, page_style
from spscanner_rag.lab.evaluation.report.differences import first_sentence, measured_by, picture
from spscanner_rag.lab.evaluation.report.plots import Look, Series, legend, looks_of, point_chart
from spscanner_rag.lab.evaluation.report.result import Column, Result, metrics_of, paired_tests
from spscanner_rag.lab.evaluation.report.rows import Row
from spscanner_rag.lab.evaluation.report.tables import Share, Table, interval, percent
from spscanner_rag.lab.evaluation.run import POSITION_CUTOFFS
from spscanner_rag.text.escaping import escaped_line

FEW_DOCUMENTS, FEW_QUESTIONS = 5, 30
"""Fewer are called few."""


def render_page(result: Result, facts: Mapping[str, str]) -> str:
    """The page, as a string to be written in UTF-8; its head shows ``facts`` such as command, machine and date."""
    looks = looks_of(result.settings)
    labels = {look.name: look for look in looks}
    parts = [
        page_head("Retrieval of evidence", page_style(__package__, "page.css")),
        f"<body>\n{_header(result, looks, facts)}<main>\n",
        *_differences(result, looks),
        *_averages(result, labels),
        *_charts(result, looks),
        *(_table(table, labels) for table in result.tables),
    ]
    if len(result.sources) > 1:
        parts += [
            "<h2>By source</h2>\n",
            *(_source_table(result, source, labels) for source in result.sources),
        ]
    if result.differences:
        parts.append(_table(paired_tests(result.differences), labels))
    return "".join([*parts, "</main>\n</body>\n</html>\n"])


def _header(result: Result, looks: Sequence[Look], facts: Mapping[str, str]) -> str:
    sentence = first_sentence(result.differences, {look.name: look.label for look in looks})
    first = (
        result.find(result.settings[0], "recall", result.cutoffs[-1], "micro") if result.settings else None
    )
    asked = f"{_asked(first)}, " if first else ""
    sources = f"{_sources(result)}: {escaped_line(', '.join(result.sources))}"
    listed = "".join(f"<p>{escaped_line(name)}: {escaped_line(value)}</p>\n" for name, value in facts.items())
    return (
        f'<header>\n<p class="label">Retrieval of evidence</p>\n<h1>{escaped_line(sentence)}</h1>\n'
        f'<p class="facts">{measured_by(result.differences)}{asked}{sources}.{_warning(first)}</p>\n'
        f"<details><summary>How this was measured</summary>\n{listed}</details>\n</header>\n"
    )


def _warning(asked: Row | None) -> str:
    """A word about a sample that is too small to speak for other documents."""
    few = asked is not None and (asked["documents"] < FEW_DOCUMENTS or asked["questions"] < FEW_QUESTIONS)
    return " Too few to say much about other documents." if few else ""


def _averaged(result: Result) -> list[Column]:
    """Metrics of the macro and micro tables."""
    return [*result.recalls, result.ndcg, ("success", result.cutoffs[0]), ("mrr", None), ("map", None)]


def _sources(result: Result) -> str:
    return "1 source" if len(result.sources) == 1 else f"{len(result.sources)} sources"


def _differences(result: Result, looks: Sequence[Look]) -> Iterator[str]:
    if result.differences:
        yield (
            "<h2>Differences</h2>\n<p>Percentage points on the same questions, with 95 % intervals. Filled points "
            "are more than chance, hollow ones may be chance.</p>\n"
        )
        yield picture(result.differences, looks)
        yield (
            "<details><summary>How chance is told</summary>\n<p>By a sign-flip test over documents, or over the "
            "questions of a single document: p below 0.05 is more than chance, not corrected for several tests. "
            "With few of them the intervals are too narrow, so one may leave out zero where the test finds too "
            "few to be sure.</p>\n</details>\n"
        )


def _averages(result: Result, labels: Mapping[str, Look]) -> Iterator[str]:
    explained = "Percent, with 95 % intervals. The best of each column is marked"
    explained += ", sentences and chunks apart." if len({s.unit for s in result.settings}) > 1 else "."
    explained += " recall@10 is the share of the evidence that the best ten hold; seconds are for a question."
    if len(result.sources) == 1:  # its means are its own numbers
        yield f"<h2>All numbers</h2>\n<p>{explained}</p>\n"
        yield _source_table(result, result.sources[0], labels, _averaged(result))
        return
    explained += " Macro: every source counts the same. Micro: every question does."
    yield f"<h2>All sources</h2>\n<p>{explained}</p>\n"
    for average in ("macro", "micro"):
        title = f"{average}, {_sources(result)}"
        yield _table(metrics_of(result, average, title, _averaged(result)), labels, caption=True)


def _asked(row: Row) -> str:
    questions, documents = row["questions"], row["documents"]
    return (
        f"{questions:,} question{'' if questions == 1 else 's'} "
        f"on {documents:,} document{'' if documents == 1 else 's'}"
    )


def _source_table(
    result: Result, source: str, labels: Mapping[str, Look], columns: Sequence[Column] = ()
) -> str:
    row = next(row for row in result.rows if row["source"] == source)
    title = f"{source} {row['split']}: {_asked(row)}"
    return _table(metrics_of(result, source, title, columns), labels, caption=True)


def _table(table: Table, labels: Mapping[str, Look], caption: bool = False) -> str:
    head = "".join(f'<th scope="col">{escaped_line(name)}</th>' for name in table.head)
    body = "".join(
        f"<tr>{_row_head(str(name), labels)}"
        + "".join(_cell(cell, (line, column) in table.best) for column, cell in enumerate(cells, start=1))
        + "</tr>\n"
        for line, (name, *cells) in enumerate(table.body)
    )
    title, about = escaped_line(table.title), escaped_line(table.about)
    above = "" if caption else f"<h2>{title}</h2>\n<p>{about}</p>\n"
    inside = f"<caption>{title}</caption>\n" if caption else ""
    content = f"{inside}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'{above}<div class="table"><table>{content}</table></div>\n'


def _row_head(name: str, labels: Mapping[str, Look]) -> str:
    look = labels.get(name)
    if look is None:
        return f'<th scope="row">{escaped_line(name)}</th>'
    dot = f'<span class="dot {look.colour}"></span>'
    return f'<th scope="row" title="{escaped_line(name)}">{dot}{escaped_line(look.label)}</th>'


def _cell(cell: str | Share, best: bool) -> str:
    if isinstance(cell, str):
        return f"<td>{escaped_line(cell)}</td>"
    mark = ' class="best"' if best else ""
    small = f"<br><small>{interval(cell)}</small>" if interval(cell) else ""
    return f"<td{mark}>{percent(cell)}{small}</td>"


def _charts(result: Result, looks: Sequence[Look]) -> Iterator[str]:
    budgets = sorted({row["k"] or 0 for row in result.rows if row["metric"] == "recall_at_tokens"})
    lengths = sorted({row["k"] or 0 for row in result.rows if row["metric"] == "recall_by_length"})
    yield f"<h2>Recall, in pictures</h2>\n{legend(looks)}\n"
    yield '<div class="charts">\n'
    yield _figure(result, looks, "Recall at k", "best k units", "recall", result.cutoffs)
    yield _figure(
        result, looks, "Recall at equal tokens", "tokens that may be retrieved", "recall_at_tokens", budgets
    )
    yield _figure(
        result,
        looks,
        "Recall by place of the evidence",
        "tenth of the document; the best 50 sentences, or 5 chunks",
        "recall_by_position",
        range(1, 11),
    )
    yield _figure(
        result, looks, "Recall@10 by length of the document", "characters, from", "recall_by_length", lengths
    )
    means = "" if len(result.sources) == 1 else "Macro means over the sources that have questions there; "
    yield f"</div>\n<p>{means}bars are 95 % intervals.</p>\n"


def _figure(
    result: Result, looks: Sequence[Look], title: str, x_label: str, metric: str, ticks: Sequence[int]
) -> str:
    series = []
    for setting, look in zip(result.settings, looks, strict=True):
        name = metric
        if metric == "recall_by_position":
            name += f"@{POSITION_CUTOFFS.get(setting.unit, (10,))[-1]}"
        series.append(Series(look, [result.find(setting, name, tick, "macro") for tick in ticks]))
    chart = point_chart(title, x_label, [f"{tick:,}" for tick in ticks], series)
    return f"<figure><h3>{title}</h3>{chart}</figure>\n"
