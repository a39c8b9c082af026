"""The result of a run: its numbers, its files, and the tables that the terminal, Markdown and HTML show."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.corpora import Corpus
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.run import DOCUMENT_CUTOFFS
from spscanner_lab.evaluation.statistics import (
    AVERAGES,
    Average,
    Difference,
    Estimate,
    Row,
    Sample,
    by_setting,
    estimate,
)
from spscanner_lab.evidence.calibration import (
    THRESHOLD,
    auroc,
    bins_of,
    calibration_error,
    from_filled,
    reliability,
)
from spscanner_lab.evidence.metrics import CHARACTER_BUDGETS, CUTOFFS
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.escaping import markdown_text

CHANCE = 0.05  # a difference with a smaller p value is significant

Column = tuple[str, int | None]  # a metric and its k

_DIGITS = {
    "tokens": 0,
    "seconds": 2,
    "peak_megabytes": 0,
    "documents_read": 0,
    "tokens_read": 0,
}
_COSTS: dict[str, Column] = {
    "documents": ("documents_read", None),
    "tokens": ("tokens_read", None),
    "seconds": ("seconds", None),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title and an explanation."""

    title: str
    about: str  # one paragraph
    head: Sequence[str]
    body: Sequence[Sequence[str | Estimate]]  # text may come from the data
    best: Collection[tuple[int, int]] = ()  # row and column of the cells to mark


def shown(cell: str | Estimate, interval: bool = True) -> str:
    """A cell as text: a share in percent, with its interval if it has one and ``interval`` is true."""
    if isinstance(cell, str):
        return cell
    percent = f"{100 * cell['value']:.1f}"
    if not interval or cell["ci_low"] is None or cell["ci_high"] is None:
        return percent
    return f"{percent} ({100 * cell['ci_low']:.1f} to {100 * cell['ci_high']:.1f})"


def points(share: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "?" if share is None else f"{100 * share:+.1f}"


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    rows: Sequence[Row]
    differences: Sequence[Difference]
    settings: Sequence[Setting]  # in the order of the tables
    tables: Sequence[Table] = ()  # additional tables
    files: Mapping[str, object] = field(
        default_factory=dict
    )  # contents of additional JSON files, by name
    cutoffs: Sequence[int] = CUTOFFS  # the numbers of units k of the metrics

    @cached_property
    def _places(self) -> dict[tuple[str, str, str, int | None, str], Row]:
        return {
            (r["retriever"], r["unit"], r["metric"], r["k"], r["source"]): r
            for r in self.rows
        }

    def find(
        self, setting: Setting, metric: str, k: int | None, source: str
    ) -> Row | None:
        """The row of a metric, if there is one."""
        return self._places.get((*setting.key, metric, k, source))

    @property
    def middle(self) -> int:
        """The cut-off 10, or the last cut-off if 10 is not one."""
        return 10 if 10 in self.cutoffs else self.cutoffs[-1]

    @cached_property
    def sources(self) -> list[str]:
        """The sources in the order of the rows, without the means over sources."""
        return list(
            dict.fromkeys(
                row["source"] for row in self.rows if row["source"] not in AVERAGES
            )
        )

    @property
    def ranked(self) -> dict[str, Column]:
        """The columns of metrics that depend only on the ranking, by name."""
        recalls: dict[str, Column] = {
            f"recall@{k}": ("recall", k) for k in self.cutoffs
        }
        return recalls | {
            f"nDCG@{self.middle}": ("ndcg", self.middle),
            "MRR": ("mrr", None),
            "MAP": ("map", None),
        }

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of tables of evidence, by name."""
        few_and_many = (
            {5, 50}
            if {5, 50} <= set(self.cutoffs)
            else {self.cutoffs[0], self.cutoffs[-1]}
        )
        return {
            **self.ranked,
            f"possible@{self.middle}": ("best_recall", self.middle),
            "in 1,000 tokens": ("recall_at_tokens", 1000),
            "in 2,000 tokens": ("recall_at_tokens", 2000),
            **{f"tokens@{k}": ("tokens", k) for k in sorted(few_and_many)},
            "seconds": ("seconds", None),
            "peak MB": ("peak_megabytes", None),
        }


def table_of(
    result: Result,
    title: str,
    about: str,
    columns: Mapping[str, Column],
    sources: Sequence[str] = (),
) -> Table:
    """A line for each setting on each of ``sources``, by default all and their means.

    The best shares are marked.

    Columns without a number are left out, as is the column of sources if there is only
    one.
    """
    means = AVERAGES if len(result.sources) > 1 else ()
    sources = sources or [*result.sources, *means]
    lines = [
        (source, setting, found)
        for source in sources
        for setting in result.settings
        if any(
            found := [
                result.find(setting, *column, source) for column in columns.values()
            ]
        )
    ]
    used = [any(cells) for cells in zip(*(found for _, _, found in lines), strict=True)]
    several = ["source"] if len(sources) > 1 else []
    body = [
        [
            *([source] if several else []),
            setting.label,
            *map(_cell, compress(found, used)),
        ]
        for source, setting, found in lines
    ]
    top: dict[
        object, float
    ] = {}  # by unit: ten chunks are far more text than ten sentences
    for row in (row for _, _, found in lines for row in found if row):
        top[_contest(row)] = max(row["value"], top.get(_contest(row), 0.0))
    best = {
        (number, place)
        for number, cells in enumerate(body)
        for place, cell in enumerate(cells)
        if not isinstance(cell, str) and cell["value"] == top[_contest(cell)]
    }
    return Table(
        title, about, [*several, "retriever", *compress(columns, used)], body, best
    )


def _cell(row: Row | None) -> str | Row:
    if row is None:
        return "-"
    return (
        f"{row['value']:,.{_DIGITS[row['metric']]}f}"
        if row["metric"] in _DIGITS
        else row
    )


def _contest(row: Row) -> tuple[object, ...]:
    return row["source"], row["unit"], row["metric"], row["k"]


def evidence_table(result: Result) -> Table:
    """How much of the evidence each setting finds, and what that costs."""
    about = (
        "Percent, with 95 % intervals. Recall in the best k units, or in so many tokens"
        " of the bundled checkpoint's tokenizer; possible: the recall of the k units"
        " that hold most of the evidence. Tokens of the best k units; seconds for a"
        " question."
    )
    return table_of(result, "", about, result.columns)


def verdicts(result: Result) -> list[str]:
    """What the recall of each pair of settings shows, in words."""
    found = []
    for test in result.differences:
        if test["metric"] != f"recall@{result.middle}" or test["average"] != "macro":
            continue
        better, worse, gain = test["first"], test["second"], test["difference"]
        low, high = test["ci_low"], test["ci_high"]
        if gain < 0:
            better, worse, gain = worse, better, -gain
            low, high = None if high is None else -high, None if low is None else -low
        interval = (
            "" if low is None else f" (95 % interval {points(low)} to {points(high)})"
        )
        # With a handful of documents the interval is too narrow, but the sign-flip test
        # is still right.
        if low is None or low <= 0 or test["p_value"] >= CHANCE:
            found.append(
                f"{better} or {worse}: {test['questions']:,} questions do not tell"
                f" which finds more{interval}."
            )
        else:
            share = (
                f"{points(gain)} points of the evidence among the best {result.middle}"
            )
            found.append(f"{better} finds more than {worse}: {share}{interval}.")
    return found


def paired_tests(differences: Sequence[Difference]) -> Table:
    """A line for each pair of settings and metric."""
    body = [
        [
            f"{test['first']} minus {test['second']}",
            test["metric"],
            points(test["difference"]),
            f"{points(test['ci_low'])} to {points(test['ci_high'])}",
            f"{test['p_value']:.4f}",
        ]
        for test in differences
    ]
    about = "Sign-flip test over documents, macro means, percentage points."
    return Table(
        "Paired tests",
        about,
        ["retrievers", "metric", "difference", "95 % interval", "p"],
        body,
    )


def documents_table(result: Result) -> Table:
    """How well each setting finds the right document of a corpus."""
    found: dict[str, Column] = {
        f"@{k}": ("document_recall", k) for k in DOCUMENT_CUTOFFS
    }
    return table_of(
        result,
        "The right document",
        "Each question was asked of many documents. MRR and @k: reciprocal rank of the"
        " document that answers it, and how often it is among the best k, by the score"
        " of its best sentence or chunk. evidence@10: recall of the evidence among the"
        " best 10 sentences or chunks of all documents. Percent, with 95 % intervals."
        " Documents and tokens scored, and seconds, per question; indexes are made"
        " before the clock starts.",
        {
            "MRR": ("document_mrr", None),
            **found,
            "evidence@10": ("recall", 10),
            **_COSTS,
        },
    )


def rankings_table(
    result: Result, queries: int, documents: int, left_out: int
) -> Table:
    """How well each setting ranks judged documents; the numbers are of the corpus."""
    left = f", {left_out:,} queries without a relevant one left out" if left_out else ""
    return table_of(
        result,
        "The ranking of documents",
        f"{queries:,} queries on {documents:,} documents of {result.sources[0]}{left}."
        " Percent, with 95 % intervals over queries. Documents and tokens scored, and"
        " seconds, per query; indexes are made before the clock starts.",
        result.ranked | _COSTS,
    )


def characters_table(result: Result) -> Table:
    """The characters of the evidence that the best units of each setting hold, as Chroma measures."""
    names = {
        "recall": "character_recall",
        "precision": "character_precision",
        "IoU": "iou",
    }
    columns: dict[str, Column] = {
        name if k is None else f"{name}@{k:,}": (metric, k)
        for name, metric in names.items()
        for k in (None, *CHARACTER_BUDGETS)
    }
    return table_of(
        result,
        "The characters of the evidence",
        "Percent, with 95 % intervals, for the best k units, as many as overlap the"
        " evidence, and for those that fit into a number of characters. IoU: characters"
        " of both, divided by characters of either.",
        columns,
        ["macro"],
    )


def corpora_table(corpora: Sequence[Corpus]) -> Table:
    """A line for each corpus."""
    body = []
    for corpus in corpora:
        characters = sum(len(document.text) for document in corpus.documents)
        counts = (len(corpus.documents), characters, len(corpus.asked), corpus.left_out)
        body.append([corpus.source, *(f"{count:,}" for count in counts)])
    return Table(
        "The corpora",
        "Questions asked, and questions left out because another document has a"
        " question in the same words, or because their evidence is not in the part of"
        " the document that is read.",
        ["source", "documents", "characters", "asked", "left out"],
        body,
    )


class CalibrationRow(TypedDict):
    """The calibration of one retriever on one source, or its "macro" or "micro" mean over all sources."""

    source: str
    retriever: str
    sentences: int
    calibration_error: float | None  # None if no question is answerable
    hit_rate: Estimate | None  # of answerable questions; None if there are none
    false_alarm_rate: (
        Estimate | None
    )  # of unanswerable questions; None if there are none
    auroc: float | None
    reliability: list[dict[str, float | None]]


def calibration_rows(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[CalibrationRow]:
    """All rows of the calibration: for each setting, sources in alphabetical order, then "macro" and "micro".

    Mean rates and AUROC are over the sources with both answerable and unanswerable
    questions, if there are any.
    """
    rows = []
    calibrated = (record for record in records if record.highest is not None)
    for setting, sources in by_setting(calibrated, settings).items():
        for source, group in sources.items():
            rows.append(_row(setting, source, {source: group}, "macro", seed))
        rows.append(_row(setting, "macro", sources, "macro", seed))
        rows.append(_row(setting, "micro", sources, "micro", seed))
    return rows


def calibration_tables(
    rows: Sequence[CalibrationRow], left_out: Sequence[str]
) -> list[Table]:
    """The tables of a result, from `calibration_rows` and the labels of the settings without probabilities."""
    others = (
        f" Left out, since their scores are not probabilities: {', '.join(left_out)}."
        if left_out
        else ""
    )
    bins = len(rows[0]["reliability"]) if rows else 0
    rates = Table(
        "Calibration",
        f"Calibration error (ECE, {bins} bins) of the sentences of answerable"
        f" questions; share of questions with a probability of {THRESHOLD} or more that"
        " the document answers them (without an encoder of its own: that a sentence"
        " does), if it does (hits) and if it does not (false alarms); AUROC of that"
        " probability, answerable questions against unanswerable ones. Percent, with"
        f" 95 % intervals.{others}",
        [
            "source",
            "retriever",
            "sentences",
            "calibration error",
            "hits",
            "false alarms",
            "AUROC",
        ],
        [
            [
                row["source"],
                row["retriever"],
                f"{row['sentences']:,}",
                _percent(row["calibration_error"], 2),
                _rate(row["hit_rate"]),
                _rate(row["false_alarm_rate"]),
                _percent(row["auroc"], 1),
            ]
            for row in rows
        ],
    )
    by_bin = Table(
        "Reliability",
        "All sentences of answerable questions, by probability: its mean, and the share"
        " of relevant sentences.",
        ["probability", "retriever", "mean", "relevant", "sentences"],
        [
            [
                f"{100 * (cell['low'] or 0):.0f} to {100 * (cell['high'] or 0):.0f}",
                row["retriever"],
                _percent(cell["probability"], 1),
                _percent(cell["relevant"], 1),
                f"{cell['sentences']:,}",
            ]
            for row in rows
            if row["source"] == "micro"
            for cell in row["reliability"]
        ],
    )
    return [rates, by_bin]


def _row(
    setting: Setting,
    name: str,
    sources: Mapping[str, Sequence[Record]],
    average: Average,
    seed: int,
) -> CalibrationRow:
    present, absent = (
        {
            source: own
            for source, group in sources.items()
            if (own := [r for r in group if r.answerable == kind])
        }
        for kind in (True, False)
    )
    none = bins_of([], [])
    labelled = [
        sum((from_filled(r.bins or []) for r in group), none)
        for group in present.values()
    ]
    pooled: NDArray[np.float64] = sum(labelled, none)
    both = [source for source in present if source in absent]
    asked = [{s: own[s] for s in both or own} for own in (present, absent)]
    compared = [(present[source], absent[source]) for source in both]
    if average == "micro":  # over the questions of all sources together
        labelled = [pooled] if labelled else []
        own, others = (list(chain(*each.values())) for each in asked)
        compared = [(own, others)] if both else []
    return CalibrationRow(
        source=name,
        retriever=setting.name,
        sentences=int(pooled[:, 0].sum()),
        calibration_error=_mean(map(calibration_error, labelled)),
        hit_rate=_alarms(asked[0], average, seed),
        false_alarm_rate=_alarms(asked[1], average, seed),
        auroc=_mean(auroc(_highest(own), _highest(others)) for own, others in compared),
        reliability=reliability(pooled),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.mean(found)) if found else None


def _alarms(
    questions: Mapping[str, Sequence[Record]], average: Average, seed: int
) -> Estimate | None:
    samples = {
        source: Sample(
            np.array(_highest(group)) >= THRESHOLD, [record.doc_id for record in group]
        )
        for source, group in questions.items()
    }
    return estimate(samples, average, seed=seed) if samples else None


def _highest(records: Iterable[Record]) -> list[float]:
    return [record.highest for record in records if record.highest is not None]


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f}"


def _rate(rate: Estimate | None) -> str:
    return f"{shown(rate)} of {rate['questions']:,}" if rate else "-"


def to_markdown(table: Table) -> str:
    """A table in Markdown, with its title and explanation."""
    title = f"{markdown_text(table.title)}. " if table.title else ""
    lines = [
        list(map(markdown_text, table.head)),
        ["---"] * len(table.head),
        *([markdown_text(shown(cell)) for cell in cells] for cells in table.body),
    ]
    return f"{title}{markdown_text(table.about)}\n\n" + "".join(
        f"| {' | '.join(cells)} |\n" for cells in lines
    )


def write_files(result: Result, out: Path) -> None:
    """Write all files of a result except its HTML page."""
    content = {
        "results.json": result.rows,
        "differences.json": result.differences,
        **result.files,
    }
    for name, value in content.items():
        write_whole(out / name, json.dumps(value, indent=1) + "\n")
    tests = [paired_tests(result.differences)] if result.differences else []
    write_whole(
        out / "results.md",
        "\n".join(map(to_markdown, [evidence_table(result), *tests, *result.tables])),
    )
