"""The page of an evaluation, and its first sentence."""

from collections.abc import Mapping, Sequence

from spscanner_lab.evaluation.result import Column, EvaluationResult
from spscanner_lab.evaluation.result_tables import paired_tests, table_of
from spscanner_lab.evaluation.rows import Difference, ResultRow
from spscanner_lab.evaluation.statistics import AVERAGES
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.evaluation.verdicts import CHANCE, deciding_tests, is_clear
from spscanner_lab.views.evaluation_charts import charts_of
from spscanner_lab.views.evaluation_markers import markers_of
from spscanner_rag.apps.pages.html_page import listed, render

# the page warns of fewer
FEW_DOCUMENTS = 5
FEW_QUESTIONS = 30

METRICS = {
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "recall_at_tokens@1000": "recall in 1,000 tokens",
    "recall_at_tokens@2000": "recall in 2,000 tokens",
    "document_mrr": "MRR of the document",
}
"""Names of metrics on the page."""


def render_evaluation(result: EvaluationResult, facts: Mapping[str, str]) -> str:
    """Render the page, a string to be written as UTF-8.

    It shows ``facts`` such as command, machine and date.
    """
    markers = markers_of(result.settings)
    marker_by_name = {}
    label_by_name = {}
    for marker in markers:
        marker_by_name[marker.name] = marker
        label_by_name[marker.name] = marker.label
    units = {setting.unit for setting in result.settings}
    tests = result.differences
    counts = _counts(result)
    several = len(result.sources) > 1
    by_source = _tables_by_source(result)
    decided_by = deciding_tests(result)
    sentence = first_sentence(decided_by, label_by_name)
    if not result.rows:
        sentence = "Answers to questions whose evidence the data do not say."
    # with one source, the means equal its numbers
    averages = by_source
    further_sources: list[Table] = []
    if several:
        averages = _tables_of_means(result)
        further_sources = by_source
    return render(
        "templates/evaluation",
        "Retrieval of evidence",
        package="spscanner_lab.views",
        result=result,
        several=several,
        counts=counts,
        few=counts is not None and _is_few(counts),
        averages=averages,
        charts=charts_of(result),
        tests=[paired_tests(tests, METRICS)] if tests else [],
        by_source=further_sources,
        facts=facts,
        markers=markers,
        by_name=marker_by_name,
        sentence=sentence,
        measured_by=_measured_by(decided_by),
        several_units=len(units) > 1,
        metrics=METRICS,
        chance=CHANCE,
        is_clear=is_clear,
        reach=_reach(tests),
        listed=listed,
    )


def _counts(result: EvaluationResult) -> ResultRow | None:
    """A row that has the numbers of questions and documents."""
    if not result.settings:
        return None
    return result.find(result.settings[0], "recall", result.cutoffs[-1], "micro")


def _is_few(counts: ResultRow) -> bool:
    few_questions = counts["questions"] < FEW_QUESTIONS
    return few_questions or counts["documents"] < FEW_DOCUMENTS


def _tables_by_source(result: EvaluationResult) -> list[Table]:
    tables = []
    for source in result.sources:
        tables.append(_table(result, source, _title(result, source)))
    return tables


def _tables_of_means(result: EvaluationResult) -> list[Table]:
    tables = []
    for average in AVERAGES:
        title = f"{average}, {len(result.sources)} sources"
        tables.append(_table(result, average, title))
    return tables


def _table(result: EvaluationResult, source: str, title: str) -> Table:
    """The table of one source, with as many columns as fit on the page."""
    last = result.cutoffs[-1]
    costs: dict[str, Column] = {
        f"tokens@{last}": ("tokens", last),
        "seconds": ("seconds", None),
    }
    return table_of(result, title, "", result.ranking_columns | costs, [source])


def _title(result: EvaluationResult, source: str) -> str:
    """A source with its split, and the numbers of questions and documents."""
    row = _first_row(result, source)
    questions = _counted(row["questions"], "question")
    documents = _counted(row["documents"], "document")
    return f"{source} {row['split']}: {questions} on {documents}"


def _first_row(result: EvaluationResult, source: str) -> ResultRow:
    for row in result.rows:
        if row["source"] == source:
            return row
    raise LookupError(source)


def _counted(number: int, name: str) -> str:
    plural = "s" * (number != 1)
    return f"{number:,} {name}{plural}"


def _measured_by(tests: Sequence[Difference]) -> list[str]:
    """The names of the metrics that the first sentence is about."""
    names: dict[str, None] = {}
    for test in tests:
        names[METRICS.get(test["metric"], test["metric"])] = None
    return list(names)


def _reach(tests: Sequence[Difference]) -> float:
    """The difference at the edge of the chart."""
    largest = 0.05
    for test in tests:
        for bound in (test["difference"], test["ci_low"], test["ci_high"]):
            if bound:
                largest = max(largest, abs(bound))
    return 1.05 * largest


def first_sentence(tests: Sequence[Difference], labels: Mapping[str, str]) -> str:
    """Say who is better, and whether by more than chance.

    Parameters
    ----------
    tests : sequence of Difference
        The deciding test of each pair; the first setting is the same in all.
    labels : mapping of str to str
        Short names of settings.

    Examples
    --------
    >>> first_sentence([], {})
    'Nothing was compared: there is one retriever.'
    """
    if not tests:
        return "Nothing was compared: there is one retriever."
    first = tests[0]["first"]
    name = _in_prose(labels.get(first, first))
    better = []
    worse = []
    even = []
    for test in tests:
        other = _in_prose(labels.get(test["second"], test["second"]))
        if not is_clear(test):
            even.append(other)
        elif test["difference"] > 0:
            better.append(other)
        else:
            worse.append(other)
    sentences = []
    if better:
        sentences.append(
            f"{name} is better than {listed(better)}, by more than chance."
        )
    if worse:
        sentences.append(f"{name} is worse than {listed(worse)}, by more than chance.")
    if even:
        opening = "Between" if sentences else "No clear winner: between"
        pair = f"{name} and {listed(even)}"
        sentences.append(f"{opening} {pair}, the difference may be chance.")
    return " ".join(sentences)


def _in_prose(label: str) -> str:
    """A label without a comma, which would split it in a list."""
    name, comma, variants = label.partition(", ")
    if not comma:
        return name
    return f"{name} ({variants})"
