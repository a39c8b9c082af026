"""The tables of a result, as the terminal, Markdown and HTML show them."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.question_metrics import DOCUMENT_CUTOFFS
from spscanner_lab.evaluation.result import WORK_COLUMNS, Column, EvaluationResult
from spscanner_lab.evaluation.rows import Difference, ResultRow
from spscanner_lab.evaluation.statistics import AVERAGES
from spscanner_lab.evaluation.tables import Table, points
from spscanner_lab.evidence.metrics import CHARACTER_BUDGETS
from spscanner_rag.baselines.settings import Setting

_DIGITS = {
    "tokens": 0,
    "seconds": 2,
    "seconds_computing": 2,
    "tflops": 4,
    "tflops_padded": 4,
    "peak_megabytes": 0,
    "documents_read": 0,
    "tokens_read": 0,
}
"""Decimals of the metrics that are not shares."""

_ABOUT_WORK = (
    " TFLOPs: 10^12 operations for the first question on a text, by formula, without"
    " and with the padding of batches."
)
"""The explanation of `WORK_COLUMNS`, if a table has any."""

_COSTS: dict[str, Column] = {
    "documents": ("documents_read", None),
    "tokens": ("tokens_read", None),
    "seconds": ("seconds", None),
    **WORK_COLUMNS,
}


class _SettingLine(NamedTuple):
    """A line of a table: a setting on a source, with a row or None for each column."""

    source: str
    setting: Setting
    rows: list[ResultRow | None]


def table_of(
    result: EvaluationResult,
    title: str,
    about: str,
    columns: Mapping[str, Column],
    sources: Sequence[str] = (),
) -> Table:
    """A line for each setting on each of ``sources``, by default all and their means.

    The best shares are marked. Columns without a number are left out, as is the column
    of sources if there is only one.
    """
    if not sources:
        means = AVERAGES if len(result.sources) > 1 else ()
        sources = [*result.sources, *means]
    lines = _lines(result, columns, sources)
    cells_by_column = zip(*(line.rows for line in lines), strict=True)
    has_number = [any(cells) for cells in cells_by_column]
    names_source = len(sources) > 1
    body: list[list[str | ResultRow]] = []
    for line in lines:
        body.append([line.source] if names_source else [])
        body[-1].append(line.setting.label)
        body[-1] += map(_cell, compress(line.rows, has_number))
    head = ["source", "retriever"] if names_source else ["retriever"]
    head += compress(columns, has_number)
    if about and WORK_COLUMNS.keys() & set(head):
        about += _ABOUT_WORK
    return Table(title, about, head, body, _best_cells(lines, body))


def _lines(
    result: EvaluationResult, columns: Mapping[str, Column], sources: Sequence[str]
) -> list[_SettingLine]:
    """The lines that have a number."""
    lines = []
    for source in sources:
        for setting in result.settings:
            rows = []
            for metric, k in columns.values():
                rows.append(result.find(setting, metric, k, source))
            if any(rows):
                lines.append(_SettingLine(source, setting, rows))
    return lines


def _best_cells(
    lines: Sequence[_SettingLine], body: Sequence[Sequence[str | ResultRow]]
) -> set[tuple[int, int]]:
    """The best share of each column, source and unit.

    Units apart: ten chunks are far more text than ten sentences.
    """
    top_by_contest: dict[object, float] = {}
    for line in lines:
        for row in line.rows:
            if row:
                top = top_by_contest.get(_contest(row), 0.0)
                top_by_contest[_contest(row)] = max(row["value"], top)
    best = set()
    for number, cells in enumerate(body):
        for place, cell in enumerate(cells):
            if isinstance(cell, str):
                continue
            if cell["value"] == top_by_contest[_contest(cell)]:
                best.add((number, place))
    return best


def _cell(row: ResultRow | None) -> str | ResultRow:
    if row is None:
        return "-"
    digits = _DIGITS.get(row["metric"])
    if digits is None:
        return row
    return f"{row['value']:,.{digits}f}"


def _contest(row: ResultRow) -> tuple[object, ...]:
    return row["source"], row["unit"], row["metric"], row["k"]


def evidence_table(result: EvaluationResult) -> Table:
    """How much of the evidence each setting finds, and what that costs."""
    about = (
        "Percent, with 95 % intervals. Recall in the best k units, or in so many tokens"
        " of the bundled checkpoint's tokenizer; possible: the recall of the k units"
        " that hold most of the evidence. Tokens of the best k units; seconds for a"
        " question; computing: these without tokenizing, as the paper counts them."
    )
    return table_of(result, "", about, result.columns)


def paired_tests(
    differences: Sequence[Difference], metric_names: Mapping[str, str] | None = None
) -> Table:
    """A line for each pair of settings and metric, by default with the rows' names."""
    names = metric_names or {}
    body = []
    for test in differences:
        body.append(
            [
                f"{test['first']} minus {test['second']}",
                names.get(test["metric"], test["metric"]),
                points(test["difference"]),
                f"{points(test['ci_low'])} to {points(test['ci_high'])}",
                f"{test['p_value']:.4f}",
            ]
        )
    about = "Sign-flip test over documents, macro means, percentage points."
    head = ["retrievers", "metric", "difference", "95 % interval", "p"]
    return Table("Paired tests", about, head, body)


def documents_table(result: EvaluationResult) -> Table:
    """How well each setting finds the right document of a corpus."""
    columns: dict[str, Column] = {"MRR": ("document_mrr", None)}
    for k in DOCUMENT_CUTOFFS:
        columns[f"@{k}"] = ("document_recall", k)
    columns["evidence@10"] = ("recall", 10)
    columns |= _COSTS
    about = (
        "Each question was asked of many documents. MRR and @k: reciprocal rank of the"
        " document that answers it, and how often it is among the best k, by the score"
        " of its best sentence or chunk. evidence@10: recall of the evidence among the"
        " best 10 sentences or chunks of all documents. Percent, with 95 % intervals."
        " Documents and tokens scored, and seconds, per question; indexes are made"
        " before the clock starts."
    )
    return table_of(result, "The right document", about, columns)


def rankings_table(
    result: EvaluationResult, queries: int, documents: int, left_out: int
) -> Table:
    """How well each setting ranks judged documents.

    The numbers are of the corpus.
    """
    without = ""
    if left_out:
        without = f", {left_out:,} queries without a relevant one left out"
    about = (
        f"{queries:,} queries on {documents:,} documents of {result.sources[0]}"
        f"{without}. Percent, with 95 % intervals over queries. Documents and tokens"
        " scored, and seconds, per query; indexes are made before the clock starts."
    )
    columns = result.ranking_columns | _COSTS
    return table_of(result, "The ranking of documents", about, columns)


def characters_table(result: EvaluationResult) -> Table:
    """The characters of the evidence that the best units hold, as Chroma measures."""
    metric_by_name = {
        "recall": "character_recall",
        "precision": "character_precision",
        "IoU": "iou",
    }
    columns: dict[str, Column] = {}
    for name, metric in metric_by_name.items():
        columns[name] = (metric, None)
        for budget in CHARACTER_BUDGETS:
            columns[f"{name}@{budget:,}"] = (metric, budget)
    about = (
        "Percent, with 95 % intervals, for the best k units, as many as overlap the"
        " evidence, and for those that fit into a number of characters. IoU: characters"
        " of both, divided by characters of either."
    )
    title = "The characters of the evidence"
    return table_of(result, title, about, columns, ["macro"])


def corpora_table(corpora: Sequence[SourceCorpus]) -> Table:
    """A line for each corpus."""
    body = []
    for corpus in corpora:
        characters = 0
        for document in corpus.documents:
            characters += len(document.text)
        documents = len(corpus.documents)
        counts = (documents, characters, len(corpus.questions), corpus.left_out)
        body.append([corpus.source, *(f"{count:,}" for count in counts)])
    return Table(
        "The corpora",
        "Questions asked, and questions left out because another document has a"
        " question in the same words, or because their evidence is not in the part of"
        " the document that is read.",
        ["source", "documents", "characters", "asked", "left out"],
        body,
    )
