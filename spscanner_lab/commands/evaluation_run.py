"""A run of ``spscanner eval`` in a folder, from options to files and page.

Imported when a run begins.
"""

import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich import table as rich_table
from rich.console import Console

from spscanner_lab.answers import report as answer_report
from spscanner_lab.answers.answering import (
    AnswerSet,
    answer_from,
    questions_with_answers,
)
from spscanner_lab.answers.contexts import (
    WHOLE_DOCUMENT,
    document_windows,
    retriever_contexts,
)
from spscanner_lab.answers.scoring import Answerer
from spscanner_lab.commands.evaluation_options import EvaluationOptions
from spscanner_lab.evaluation.ablations import CONTEXTS, Chunked, ablations
from spscanner_lab.evaluation.judged import (
    is_beir,
    judged_study_of,
    read_beir,
    write_runs,
)
from spscanner_lab.evaluation.records import RecordFile, check_arguments
from spscanner_lab.evaluation.result import (
    CHANCE,
    Column,
    Result,
    Table,
    paired_tests,
    shown,
    table_of,
    verdicts,
    write_files,
)
from spscanner_lab.evaluation.run import POSITION_CUTOFFS, Plan, processor_name
from spscanner_lab.evaluation.statistics import AVERAGES, Difference, Row
from spscanner_lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_lab.evidence.chunking import is_chunking, read_chunking
from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import Document, read_documents
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.language_models import named_model
from spscanner_lab.llm.reply_file import ReplyFile
from spscanner_rag import __version__
from spscanner_rag.apps.cli.options import RetrieverOptions, tell
from spscanner_rag.apps.pages.html_page import listed, render, short_labels
from spscanner_rag.apps.pages.terminal import (
    line_of,
    new_bar,
    open_console,
    progress_bars,
)
from spscanner_rag.baselines.combined import bundled_token_counter
from spscanner_rag.baselines.identity import identity_of
from spscanner_rag.baselines.names import scorer_of
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scorers import Scorer
from spscanner_rag.system.folder_lock import folder_lock, refuse_in_use
from spscanner_rag.system.threads import use_threads
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.token_counts import resolve_counter

_SHORT = 8  # characters; columns of numbers up to this length are never wrapped
_FEW = 4  # most numbers on a line that leave room for their intervals
_WIDE = 200  # columns, where the output has no width

FEW_DOCUMENTS, FEW_QUESTIONS = 5, 30  # the page warns of fewer
COLOURS = 8  # classes c1 to c8 of page.css
METRICS = {
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "recall_at_tokens@1000": "recall in 1,000 tokens",
    "recall_at_tokens@2000": "recall in 2,000 tokens",
    "document_mrr": "MRR of the document",
}

SHAPES = {
    "sentence": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "chunk": "M-4-4h8v8h-8z",
    "passage": "M0-5.6 5.6 0 0 5.6-5.6 0z",
    "document": "M0-4.8 4.8 4-4.8 4z",
}
"""Outlines of the markers: a circle, a square, a diamond and a triangle."""


def run_evaluation(
    data: Sequence[Path],
    options: EvaluationOptions,
    computes: RetrieverOptions,
    out: Path,
) -> str:
    """Run in a folder, write all files, show the result, and return why the run ended early ("" if it did not).

    Everything that the options name is read and checked before anything is written.
    """
    study, documents, bad = _study_of(data, options, computes.settings)
    answers = None if options.answers is None else Answering(options, study)
    run_arguments = {
        "max_questions": options.max_questions,
        "seed": options.seed,
        "held_out": sorted(options.held_out or []),
        "device": computes.device,
        "dtype": computes.dtype,
        "trust_remote_code": computes.trust_remote_code,
        "version": __version__,
        **study.arguments,
    }
    refuse_in_use(out)
    check_arguments(out, run_arguments)
    titles: dict[
        str, str
    ] = {}  # each `run` of the study fills it, and the scorers read it
    use_threads(computes.threads)
    loaded, scorers = _scorers(computes, titles, study, len(documents))
    identities = {name: identity_of(scorer) for name, scorer in loaded.items()}
    with folder_lock(
        out
    ) as leftovers:  # nothing is written before everything is loaded
        file = RecordFile(out, run_arguments | {"retrievers": identities})
        if file.records:
            tell(
                f"{out}: found {len(file.records):,} records of an earlier run, which"
                " are kept"
            )
        if leftovers:
            tell(
                f"{out}: removed {len(leftovers):,} unfinished files of a run that was"
                " killed"
            )
        count_tokens = (
            bundled_token_counter()
        )  # the same for all settings; works offline
        with progress_bars(None) as bars:
            for ask in study.asks:
                ask.run(
                    scorers,
                    titles,
                    count_tokens,
                    file,
                    new_bar(bars, ask.setting.label),
                )
        records = list(file.records.values())
        write_runs(
            records, [ask.setting for ask in study.asks if ask.qrels is not None], out
        )
        result, stopped = study.result(records), ""
        if answers is not None:
            write_result(
                result, out, _run_facts(bad)
            )  # kept if answering is interrupted
            result, stopped = answers.added_to(result, scorers, titles, out)
        write_result(result, out, _run_facts(bad))
    show_result(result, out)
    return stopped


def _study_of(
    data: Sequence[Path], options: EvaluationOptions, settings: list[Setting]
) -> tuple[Study, list[Document], int]:
    """The study, its documents, and the number of bad lines that were left out."""
    sample = options.max_questions, options.seed
    judged_folder = data[0] if len(data) == 1 and is_beir(data[0]) else None
    exact = len(data) == 1 and is_chunking(data[0])
    is_corpus = (
        options.corpus
        or options.among is not None
        or judged_folder is not None
        or exact
    )
    plan = Plan(
        first_stages=options.stages(is_corpus, few=exact),
        read_documents=options.read_documents,
        among=options.among,
        characters=options.document_characters,
        cutoffs=options.measured,
        aggregation=options.aggregation,  # type: ignore[arg-type]  # a known one
        exact=exact,
    )
    if judged_folder is not None:
        of_files = "among document_characters held_out max_questions"
        options.refuse(
            of_files, "with a folder in BEIR's layout; expected it with question files"
        )
        judged = read_beir(judged_folder, options.split)
        return (
            judged_study_of(settings, judged, plan, options.seed),
            list(judged.documents),
            0,
        )
    documents, bad = (read_chunking(data[0]), 0) if exact else _documents(data, options)
    if is_corpus:
        return corpus_study_of(settings, documents, plan, *sample), documents, bad
    study = study_of(
        [*settings, *(ablations(settings) if options.context_ablation else ())],
        documents,
        plan,
        *sample,
        calibration=options.calibration,
        answered=options.answers is not None,
    )
    return study, documents, bad


def _documents(
    data: Sequence[Path], options: EvaluationOptions
) -> tuple[list[Document], int]:
    """The documents of the question files, and the number of bad lines that were left out."""
    bad: list[DataError] = []
    every = read_documents(
        data, bad.append if options.skip_bad else None, distinct=True
    )
    held_out = options.held_out or []
    documents = [
        own for own in every if own.source not in held_out or is_held_out(own.doc_id)
    ]
    for error in bad[:5]:
        tell(f"left out: {error}")
    return documents, len(bad)


def _scorers(
    computes: RetrieverOptions, titles: dict[str, str], study: Study, documents: int
) -> tuple[dict[str, Scorer], dict[Setting, Scorer]]:
    """The scorers by name and by setting.

    A missing one is reported before any work starts.
    """
    loading = computes.loading(titles=titles)
    if study.of_corpora:
        # each question reads many texts, and the next question reads them again
        kinds = {*computes.units, "sentence", "chunk"}
        loading = replace(loading, keep_texts=documents * len(kinds))
    asked = [*study.settings, *study.stages]
    loaded = {
        name: scorer_of(name, loading)
        for name in dict.fromkeys(each.retriever for each in asked)
    }
    scorers = {setting: loaded[setting.retriever] for setting in asked}
    for setting, scorer in scorers.items():
        for variant in setting.variants:  # of a scanner
            scorers[setting] = Chunked(scorer, CONTEXTS[variant])  # type: ignore[arg-type]
    return loaded, scorers


def _run_facts(bad: int) -> dict[str, str]:
    return {
        "Command": one_line(shlex.join(["spscanner", *sys.argv[1:]])),
        "Machine": f"{processor_name()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "Date": datetime.now(UTC).date().isoformat(),
        "Lines left out": str(bad),
    }


class Answering:
    """Answers to the questions of a study.

    Creating it loads the models, before any work starts.

    Raises ``ValueError`` or ``ImportError`` if questions are not on single documents or
    have no answers, or if a model cannot be loaded.
    """

    def __init__(self, options: EvaluationOptions, study: Study) -> None:
        if study.of_corpora:
            raise ValueError(
                "got --answers with --corpus, --among or a folder in BEIR's layout;"
                " expected questions on single documents: make two runs, each with its"
                " own --out"
            )
        self.options, self.study = options, study
        self.questions = questions_with_answers(study.questions)
        judge = None if options.judge is None else named_model(options.judge)
        self.models = named_model(options.answers or ""), judge
        self.count_tokens = resolve_counter("o200k_base")

    def added_to(
        self,
        result: Result,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        out: Path,
    ) -> tuple[Result, str]:
        """Return the result with answers, and why asking ended early ("" if not).

        Write ``answers.jsonl``.
        """
        options = self.options
        replies = ReplyFile(out / "answer-replies.jsonl")
        budget = Budget(
            max_requests=options.max_requests,
            requests=replies.attempts,
            usage=replies.usage,
        )
        asker = Asker(
            replies=replies, budget=budget, count_tokens=self.count_tokens, retries=5
        )
        settings, units, words = (
            self.study.settings,
            options.answer_units,
            options.answer_words,
        )
        sources = {
            s: retriever_contexts(s, scorers[s], titles, units, words)
            for s in settings
        }
        if options.direct_answers:
            window = options.direct_window
            sources[WHOLE_DOCUMENT] = lambda own, _: (
                document_windows(own.text, window)
            )
        answerer = Answerer(asker, *self.models)
        sets: list[AnswerSet] = []
        with progress_bars(None) as bars:
            for setting, contexts in sources.items():
                show = new_bar(bars, f"answers from {setting.label}")
                form: Any = options.answer_form  # one of the known ones
                answers = answer_from(
                    setting, contexts, self.questions, answerer, form, show
                )
                sets.append(answers)
        rows = answer_report.answer_rows(sets, self.study.seed)
        lines = [json.dumps(line) + "\n" for line in answer_report.answer_lines(sets)]
        write_whole(out / "answers.jsonl", "".join(lines))
        content = {
            "model": options.answers,
            "judge": options.judge,
            "form": options.answer_form,
            "spent": {"requests": replies.attempts, **replies.usage._asdict()},
            "asked": list(map(answer_report.counts_of, sets)),
            "rows": rows,
        }
        tables = [
            *result.tables,
            *answer_report.answer_tables(sets, rows, options.judge is not None),
        ]
        return (
            replace(
                result, tables=tables, files={**result.files, "answers.json": content}
            ),
            budget.stopped,
        )


class Look(NamedTuple):
    """The marker of a setting everywhere on the page: a colour for its retriever, a shape for its unit."""

    label: str
    name: str  # the whole label
    colour: str  # a CSS class
    shape: str  # an SVG path
    hollow: bool  # whether it is a variant of a setting


@dataclass(frozen=True)
class Chart:
    """Shares for each setting of the page at evenly spaced ticks.

    None where there is no share.
    """

    title: str
    x_label: str
    ticks: Sequence[int]
    series: Sequence[Sequence[Row | None]]

    width, height, left, right, top, bottom = 560, 300, 54, 14, 14, 44

    @property
    def most(self) -> float:
        """The share at the top edge: the largest value, rounded up to a fifth."""
        shares = [
            float(share["value"]) for own in self.series for share in own if share
        ]
        return 0.2 * math.ceil(max([0.05, *shares]) / 0.2 - 1e-9)

    @property
    def lines(self) -> list[float]:
        """The shares at which grid lines are drawn."""
        return [number * self.most / 4 for number in range(5)]

    def x(self, tick: int, series: int | None = None) -> float:
        """The horizontal place of a tick or, with ``series``, of that series' marker beside the tick."""
        room = (self.width - self.left - self.right) / max(1, len(self.ticks))
        apart = min(8.0, 0.8 * room / max(1, len(self.series)))
        shift = 0.0 if series is None else apart * (series - (len(self.series) - 1) / 2)
        return self.left + room * (tick + 0.5) + shift

    def y(self, share: float) -> float:
        """The vertical place of a share, counted from the top."""
        inside = min(max(share, 0.0), self.most)
        return self.top + (self.height - self.top - self.bottom) * (
            1 - inside / self.most
        )


def render_evaluation(result: Result, facts: Mapping[str, str]) -> str:
    """Render the page, a string to be written as UTF-8.

    It shows ``facts`` such as command, machine and date.
    """
    looks, tests = looks_of(result.settings), result.differences
    asked = (
        result.find(result.settings[0], "recall", result.cutoffs[-1], "micro")
        if result.settings
        else None
    )
    first_metrics = [test["metric"] for test in first_tests(tests).values()]
    bounds = [
        bound
        for test in tests
        for bound in (test["difference"], test["ci_low"], test["ci_high"])
        if bound
    ]
    several = len(result.sources) > 1
    by_source = [
        _of_source(result, source, _asked(result, source)) for source in result.sources
    ]
    of_all = [
        _of_source(result, name, f"{name}, {len(result.sources)} sources")
        for name in AVERAGES
    ]
    return render(
        "templates/evaluation",
        "Retrieval of evidence",
        package="spscanner_lab.commands",
        result=result,
        several=several,
        asked=asked,
        few=asked
        and (asked["questions"] < FEW_QUESTIONS or asked["documents"] < FEW_DOCUMENTS),
        averages=(
            of_all if several else by_source
        ),  # with one source, the means equal its numbers
        charts=charts_of(result),
        tests=[paired_tests(tests)] if tests else [],
        by_source=by_source if several else [],
        facts=facts,
        looks=looks,
        by_name={look.name: look for look in looks},
        sentence=first_sentence(tests, {look.name: look.label for look in looks}),
        measured_by=list(
            dict.fromkeys(METRICS.get(name, name) for name in first_metrics)
        ),
        several_units=len({setting.unit for setting in result.settings}) > 1,
        metrics=METRICS,
        chance=CHANCE,
        reach=1.05
        * max([0.05, *map(abs, bounds)]),  # the difference at the edge of the chart
        listed=listed,
    )


def _of_source(result: Result, source: str, title: str) -> Table:
    """The table of one source, with as many columns as fit on the page."""
    most = result.cutoffs[-1]
    costs: dict[str, Column] = {
        f"tokens@{most}": ("tokens", most),
        "seconds": ("seconds", None),
    }
    return table_of(result, title, "", result.ranked | costs, [source])


def _asked(result: Result, source: str) -> str:
    row = next(row for row in result.rows if row["source"] == source)
    asked = " on ".join(
        f"{number:,} {name}{'' if number == 1 else 's'}"
        for name, number in (
            ("question", row["questions"]),
            ("document", row["documents"]),
        )
    )
    return f"{source} {row['split']}: {asked}"


def charts_of(result: Result) -> list[Chart]:
    """The charts of recall: each setting by cut-off, tokens, place of the evidence and document length."""
    budgets, lengths = (
        sorted({row["k"] or 0 for row in result.rows if row["metric"] == metric})
        for metric in ("recall_at_tokens", "recall_by_length")
    )
    places = "tenth of the document; the best 50 sentences, or 5 chunks"
    shown_by = [
        ("Recall at k", "best k units", "recall", result.cutoffs),
        (
            "Recall at equal tokens",
            "tokens that may be retrieved",
            "recall_at_tokens",
            budgets,
        ),
        ("Recall by place of the evidence", places, "recall_by_position", range(1, 11)),
        (
            "Recall@10 by length of the document",
            "characters, from",
            "recall_by_length",
            lengths,
        ),
    ]
    charts = []
    for title, label, metric, ticks in shown_by:
        series = []
        for setting in result.settings:
            by_place = metric == "recall_by_position"
            name = (
                f"{metric}@{POSITION_CUTOFFS.get(setting.unit, (10,))[-1]}"
                if by_place
                else metric
            )
            series.append([result.find(setting, name, tick, "macro") for tick in ticks])
        charts.append(Chart(title, label, ticks, series))
    return charts


def looks_of(settings: Sequence[Setting]) -> list[Look]:
    """The look of each setting: a retriever has one colour, whatever its unit and variants."""
    retrievers = list(dict.fromkeys(setting.retriever for setting in settings))
    labels = short_labels([setting.label for setting in settings])
    return [
        Look(
            label,
            setting.label,
            f"c{retrievers.index(setting.retriever) % COLOURS + 1}",
            SHAPES.get(setting.unit, SHAPES["document"]),
            bool(setting.variants),
        )
        for label, setting in zip(labels, settings, strict=True)
    ]


def first_sentence(differences: Sequence[Difference], labels: Mapping[str, str]) -> str:
    """Say who is better, and whether significantly, by each pair's first metric.

    ``labels`` are short names.
    """
    if not differences:
        return "Nothing was compared: there is one retriever."
    first = differences[0]["first"]
    groups: dict[str, list[str]] = {"better": [], "worse": [], "even": []}
    for second, test in first_tests(differences).items():
        clear = "better" if test["difference"] > 0 else "worse"
        kind = clear if test["p_value"] < CHANCE else "even"
        groups[kind].append(_in_prose(labels.get(second, second)))
    name = _in_prose(labels.get(first, first))
    sentences = [
        f"{name} is {kind} than {listed(groups[kind])}, by more than chance."
        for kind in ("better", "worse")
        if groups[kind]
    ]
    if groups["even"]:
        opening = "Between" if sentences else "No clear winner: between"
        sentences.append(
            f"{opening} {name} and {listed(groups['even'])}, the difference may be"
            " chance."
        )
    return " ".join(sentences)


def first_tests(differences: Sequence[Difference]) -> dict[str, Difference]:
    """The first test of each retriever against the first one."""
    found: dict[str, Difference] = {}
    for test in differences:
        found.setdefault(test["second"], test)
    return found


def _in_prose(label: str) -> str:
    name, comma, variants = label.partition(", ")
    return (
        f"{name} ({variants})" if comma else name
    )  # no comma, which would split it in a list


def write_result(result: Result, out: Path, facts: Mapping[str, str]) -> None:
    """Write all files of a result; the page shows ``facts`` about the run."""
    write_files(result, out)
    write_whole(out / "results.html", render_evaluation(result, facts))


def show_result(result: Result, out: Path) -> None:
    """Print the tables, then the folder with the files."""
    console = open_console(sys.stdout)
    if (
        not console.is_terminal
    ):  # a file or a pipe has no width, so cells are not folded
        console.width = _WIDE
    ranked = table_of(result, "Recall, nDCG, MRR and MAP, percent", "", result.ranked)
    console.print(_table(console, ranked))
    for verdict in verdicts(result):
        console.print(line_of(console, verdict, "bold"))
    for table in result.tables:
        console.print(_table(console, table))
        console.print(line_of(console, table.about))
    console.print(line_of(console, f"written to {out}"))


def _table(console: Console, table: Table) -> rich_table.Table:
    """A table for the terminal.

    Lines separate groups with equal first cells, if a group has several rows.
    """
    grid = rich_table.Table(
        title=line_of(console, table.title), box=box.SIMPLE_HEAD, pad_edge=False
    )
    few = all(
        sum(not isinstance(cell, str) for cell in cells) <= _FEW for cells in table.body
    )
    body = [[one_line(shown(cell, few)) for cell in cells] for cells in table.body]
    for number, name in enumerate(table.head):
        short = all(len(cells[number]) <= _SHORT for cells in body)
        grid.add_column(
            line_of(console, name),
            justify="right" if number > 1 else "left",
            no_wrap=number > 1 and short,
        )
    firsts = [cells[0] for cells in body]
    for number, cells in enumerate(body):
        if (
            number
            and firsts[number] != firsts[number - 1]
            and len(set(firsts)) < len(firsts)
        ):
            grid.add_section()
        grid.add_row(*(line_of(console, cell) for cell in cells))
    return grid
