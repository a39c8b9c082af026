"""The result of a run: its numbers, the tables that terminal, Markdown and HTML show, and its files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.lab.evaluation.corpora import Corpus
from spscanner_rag.lab.evaluation.rows import Difference, Row
from spscanner_rag.lab.evaluation.run import DOCUMENT_CUTOFFS
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import AVERAGES
from spscanner_rag.lab.evaluation.tables import Table, number, percent, points, shown, to_markdown
from spscanner_rag.lab.evidence.metrics import CHARACTER_BUDGETS, CUTOFFS

Column = tuple[str, int | None]  # a metric and its k

_OF_CORPORA = {
    "MRR": ("document_mrr", None),
    **{f"@{k}": ("document_recall", k) for k in DOCUMENT_CUTOFFS},
    "evidence@10": ("recall", 10),
}
_SIGNIFICANT = 0.05  # the p of a verdict is below it
COSTS = {"documents_read": 0, "tokens_read": 0, "seconds": 2, "index_megabytes": 1}
COST_HEADS = ("documents", "tokens", "seconds", "index MB")


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    rows: Sequence[Row]
    differences: Sequence[Difference]
    settings: Sequence[Setting]  # in the order of the tables
    tables: Sequence[Table] = ()  # additional ones
    files: Mapping[str, object] = field(default_factory=dict)  # contents of additional JSON files, by name
    cutoffs: Sequence[int] = CUTOFFS  # numbers of units of the metrics

    @cached_property
    def _places(self) -> dict[tuple[str, str, str, int | None, str], Row]:
        return {(r["retriever"], r["unit"], r["metric"], r["k"], r["source"]): r for r in self.rows}

    def find(self, setting: Setting, metric: str, k: int | None, source: str) -> Row | None:
        """The row of a metric, if there is one."""
        return self._places.get((*setting.key, metric, k, source))

    @property
    def recalls(self) -> list[Column]:
        """Recall at each cut-off."""
        return [("recall", k) for k in self.cutoffs]

    @property
    def ndcg(self) -> Column:
        """nDCG@10, or at the last cut-off where 10 is none."""
        return "ndcg", 10 if 10 in self.cutoffs else self.cutoffs[-1]

    @cached_property
    def sources(self) -> list[str]:
        """The sources, in the order of the rows, without the means over them."""
        return list(dict.fromkeys(row["source"] for row in self.rows if row["source"] not in AVERAGES))

    @property
    def averaged(self) -> list[Column]:
        """The columns of tables with a line for each setting."""
        return [*self.recalls, self.ndcg, ("mrr", None), ("map", None)]

    @property
    def tokens_at(self) -> list[int]:
        """The numbers of units, few and many, whose tokens are shown."""
        return [5, 50] if {5, 50} <= set(self.cutoffs) else sorted({self.cutoffs[0], self.cutoffs[-1]})

    def values(self, setting: Setting, columns: Iterable[Column], source: str) -> list[Row | None]:
        """The row of each column."""
        return [self.find(setting, *column, source) for column in columns]

    def costs(self, setting: Setting, costs: Mapping[str, int], source: str) -> list[str]:
        """The numbers of metrics that are no shares, with so many digits."""
        return [number(self.find(setting, name, None, source), digits) for name, digits in costs.items()]

    @property
    def shown_sources(self) -> list[str]:
        """The sources, and both means over them where there are several."""
        return [*self.sources, "macro", "micro"] if len(self.sources) > 1 else self.sources


def summary(result: Result) -> Table:
    """A line for each source and setting, without intervals."""
    body = [
        [source, setting.label, *map(percent, found)]
        for source in result.shown_sources
        for setting, found in _lines(result, source, result.averaged)
    ]
    head = ["source", "retriever", *(f"@{k}" for k in result.cutoffs), "nDCG", "MRR", "MAP"]
    return Table(f"recall at k (@k), nDCG@{result.ndcg[1]}, MRR and MAP, percent", "", head, body)


def recalls(result: Result) -> Table:
    """A line for each source, with a column for each setting, and one for the most that each unit allows."""
    columns = [(setting.label, setting, "recall") for setting in result.settings]
    for unit in dict.fromkeys(setting.unit for setting in result.settings):
        of_unit = [setting for setting in result.settings if setting.unit == unit]
        best = [("best_recall", k) for k in result.cutoffs]
        rows = [result.values(setting, best, "macro") for setting in of_unit]
        possible = [[row and row["value"] for row in own] for own in rows]
        read_alike = all(one == possible[0] for one in possible)  # not after different first stages
        if read_alike and None not in possible[0]:
            columns.append((f"possible, {of_unit[0].units}", of_unit[0], "best_recall"))
    body = []
    for source in result.shown_sources:
        found = [
            result.values(setting, [(metric, k) for k in result.cutoffs], source)
            for _, setting, metric in columns
        ]
        questions = next((row["questions"] for cells in found for row in cells if row), 0)
        body.append([source, f"{questions:,}", *(" / ".join(map(percent, cells)) for cells in found)])
    about = f"Recall in percent @ {' / '.join(map(str, result.cutoffs))}."
    if len(columns) > len(result.settings):
        about += " Possible: the recall of the k units that hold most of the evidence."
    return Table("", about, ["source", "questions", *(label for label, _, _ in columns)], body)


def macro_means(result: Result) -> Table:
    """A line for each setting, with intervals and costs."""
    columns = {
        f"recall@{result.ndcg[1]}": ("recall", result.ndcg[1]),
        f"nDCG@{result.ndcg[1]}": result.ndcg,
        "MRR": ("mrr", None),
        "recall in 1,000 tokens": ("recall_at_tokens", 1000),
        "recall in 2,000 tokens": ("recall_at_tokens", 2000),
    }
    body = []
    for setting in result.settings:
        found = result.values(setting, columns.values(), "macro")
        work = result.costs(setting, {"gigaflops": 0, "peak_megabytes": 0}, "macro")
        body.append([setting.label, *map(shown, found), *_costs(result, setting, "macro"), *work])
    about = "Macro means in percent, with 95 % intervals; tokens of the bundled checkpoint's tokenizer."
    costs = [f"tokens of the best {_few_and_many(result)}", "seconds", "gigaflops", "peak MB"]
    return Table("", about, ["retriever", *columns, *costs], body)


def metrics_of(result: Result, source: str, title: str, columns: Sequence[Column] = ()) -> Table:
    """Metrics of one source or average; the best of each unit and column is marked."""
    columns = columns or result.averaged
    lines = list(_lines(result, source, columns))
    top: dict[tuple[str, int], float] = {}  # by unit: ten chunks are far more text than ten sentences
    for setting, found in lines:
        for column, row in enumerate(found, start=1):
            if row:
                top[setting.unit, column] = max(row["value"], top.get((setting.unit, column), 0.0))
    best = {
        (number, column)
        for number, (setting, found) in enumerate(lines)
        for column, row in enumerate(found, start=1)
        if row and row["value"] == top[setting.unit, column]
    }
    names = [metric if k is None else f"{metric}@{k}" for metric, k in columns]
    body = [
        [setting.label, *(row or "-" for row in found), *_costs(result, setting, source)]
        for setting, found in lines
    ]
    return Table(
        title, "", ["retriever", *names, f"tokens at {_few_and_many(result)}", "seconds"], body, best
    )


def verdicts(result: Result) -> list[str]:
    """What the recall of each pair of settings says, in words."""
    found = []
    for test in result.differences:
        if test["metric"] != f"recall@{result.ndcg[1]}" or test["average"] != "macro":
            continue
        better, worse, gain = test["first"], test["second"], test["difference"]
        low, high = test["ci_low"], test["ci_high"]
        if gain < 0:
            better, worse, gain = worse, better, -gain
            low, high = None if high is None else -high, None if low is None else -low
        interval = "" if low is None else f" (95 % interval {points(low)} to {points(high)})"
        # Of a handful of documents the interval is too narrow; the test, which flips their signs, knows.
        if low is None or low <= 0 or test["p_value"] >= _SIGNIFICANT:
            found.append(
                f"{better} or {worse}: {test['questions']:,} questions do not tell which finds more{interval}."
            )
        else:
            share = f"{points(gain)} points of the evidence among the best {result.ndcg[1]}"
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
    return Table("Paired tests", about, ["retrievers", "metric", "difference", "95 % interval", "p"], body)


def documents_table(result: Result) -> Table:
    """How well each setting finds the right document of a corpus: a line for each source and setting."""
    body = []
    for source in result.shown_sources:
        for setting, (rank, *found) in _lines(result, source, list(_OF_CORPORA.values())):
            costs = result.costs(setting, COSTS, source)
            body.append([source, setting.label, shown(rank), *map(percent, found), *costs])
    return Table(
        "The right document",
        "Each question was asked of many documents. MRR and @k: reciprocal rank of the document that answers it, "
        "and how often it is among the best k; its score is that of its best sentence or chunk. evidence@10: "
        "recall of the evidence among the best 10 sentences or chunks of all documents. Percent, with 95 % "
        "intervals. Documents and tokens scored, and seconds, for a question; an index is made before the "
        "clock starts.",
        ["source", "retriever", *_OF_CORPORA, *COST_HEADS],
        body,
    )


def characters_table(result: Result) -> Table:
    """A line for each setting with the characters of the evidence that its best units hold, as Chroma measures."""
    body = []
    for setting in result.settings:
        cells = []
        for name in ("character_recall", "character_precision", "iou"):
            found = result.values(setting, [(name, k) for k in (None, *CHARACTER_BUDGETS)], "macro")
            cells.append(" / ".join(map(percent, found)))
        body.append([setting.label, *cells])
    return Table(
        "The characters of the evidence",
        "Percent, of the best k units, as many as overlap the evidence, / of what fits into "
        f"{' / '.join(f'{budget:,}' for budget in CHARACTER_BUDGETS)} characters. IoU: shared characters by those "
        "of either.",
        ["retriever", "recall", "precision", "IoU"],
        body,
    )


def corpora_table(corpora: Sequence[Corpus]) -> Table:
    """A line for each corpus."""
    body = []
    for corpus in corpora:
        characters = sum(len(document.text) for document in corpus.documents)
        counts = (len(corpus.documents), characters, len(corpus.asked), corpus.repeated, corpus.cut_off)
        body.append([corpus.source, *(f"{count:,}" for count in counts)])
    return Table(
        "The corpora",
        "Questions asked, and those left out: because their words are also a question of another document "
        "(repeated), or because their evidence is not in the part of the document that is read (cut off).",
        ["source", "documents", "characters", "asked", "repeated", "cut off"],
        body,
    )


def write_files(result: Result, out: Path) -> None:
    """Write all files of a result except its page."""
    content = {"results.json": result.rows, "differences.json": result.differences, **result.files}
    for name, value in content.items():
        write_whole(out / name, json.dumps(value, indent=1) + "\n")
    tests = [paired_tests(result.differences)] if result.differences else []
    tables = [recalls(result), macro_means(result), *tests, *result.tables]
    write_whole(out / "results.md", "\n".join(map(to_markdown, tables)))


def _lines(
    result: Result, source: str, columns: Sequence[Column]
) -> Iterator[tuple[Setting, list[Row | None]]]:
    for setting in result.settings:
        found = result.values(setting, columns, source)
        if any(found):
            yield setting, found


def _costs(result: Result, setting: Setting, source: str) -> list[str]:
    tokens = map(number, result.values(setting, [("tokens", k) for k in result.tokens_at], source))
    (seconds,) = result.costs(setting, {"seconds": 2}, source)
    return [" / ".join(tokens), "below 0.01" if seconds == "0.00" else seconds]


def _few_and_many(result: Result) -> str:
    return " / ".join(map(str, result.tokens_at))
