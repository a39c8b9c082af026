"""Tables of a report on answers, with the rows of the paper's Table 1 and Figure 3."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spscanner_lab.answers.answering import AnswerSet
from spscanner_lab.answers.report import SCORES, AnswerRows
from spscanner_lab.answers.scoring import AnswerScore
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import LENGTH_EDGES, ResultRow, length_name
from spscanner_lab.evaluation.tables import Table

NOT_APPLICABLE = "N/A"
"""Token F1 where every question is multiple choice, as the paper says it."""

Cells = list[str | ResultRow]

_COUNTS = ("questions", "failed", "undecided")
_COSTS = ("prompts", "prompt tokens", "reply tokens")
_ABOUT = (
    "Percent, with 95 % intervals: the mean over all questions, as in the paper's Table"
    " 1, then the macro mean over sources. Failed answers are left out, as are, for"
    " accuracy, answers that the judge did not decide and, for token_f1, multiple"
    " choice. Prompts and their tokens (o200k_base) are those for answers, without the"
    " judge's."
)
_ABOUT_CATEGORIES = (
    "Percent, with 95 % intervals: the mean over all questions of a category, then the"
    " macro mean over its sources."
)
_ABOUT_SOURCES = (
    "Percent, with 95 % intervals: the mean over the questions of each source."
)
_ABOUT_LENGTHS = (
    "Percent, with 95 % intervals: the mean over the questions on documents of so many"
    " tokens, as in the paper's Figure 3."
)


@dataclass
class _Tally:
    """Questions of a line of a table, and those without some of the scores."""

    questions: int = 0
    failed: int = 0
    undecided: int = 0
    multiple_choice: int = 0

    def cells(self) -> list[str]:
        """The numbers in the order of `_COUNTS`."""
        counts = (self.questions, self.failed, self.undecided)
        return [f"{count:,}" for count in counts]


def answer_tables(
    sets: Sequence[AnswerSet], rows: AnswerRows, judged: bool
) -> list[Table]:
    """Return tables of means and costs, and by category, source and length."""
    settings = [answer_set.setting for answer_set in sets]
    result = EvaluationResult(rows.of_sources, (), settings)
    tables = [_table_of_means(sets, result, judged)]
    if rows.of_categories:
        result_by_category = {}
        for category, of_category in rows.of_categories.items():
            result_by_category[category] = EvaluationResult(of_category, (), settings)
        tables.append(_table_of_categories(sets, result_by_category, judged))
    if len(result.sources) > 1:
        tables.append(_table_of_sources(sets, result, judged))
    tables.append(_table_of_lengths(sets, result))
    return tables


def _table_of_means(
    sets: Sequence[AnswerSet], result: EvaluationResult, judged: bool
) -> Table:
    body: list[Cells] = []
    for answer_set in sets:
        line: Cells = [answer_set.setting.label]
        tally = _tally(answer_set, judged)
        line += _cells(answer_set, result, ("micro", "macro"), tally)
        line += tally.cells()
        answering = answer_set.answering
        costs = (answering.prompts, *answering.usage)
        line += [f"{count:,}" for count in costs]
        body.append(line)
    head = ["answers from", *_score_names(), *_COUNTS, *_COSTS]
    return Table("Answers", _ABOUT, head, body)


def _table_of_categories(
    sets: Sequence[AnswerSet], results: Mapping[str, EvaluationResult], judged: bool
) -> Table:
    body: list[Cells] = []
    for category, result in results.items():
        for answer_set in sets:
            tally = _tally(answer_set, judged, category=category)
            line: Cells = [category, answer_set.setting.label]
            line += _cells(answer_set, result, ("micro", "macro"), tally)
            body.append([*line, *tally.cells()])
    head = ["category", "answers from", *_score_names(), *_COUNTS]
    return Table("Answers by category", _ABOUT_CATEGORIES, head, body)


def _table_of_sources(
    sets: Sequence[AnswerSet], result: EvaluationResult, judged: bool
) -> Table:
    body: list[Cells] = []
    for source in _sources(sets):
        for answer_set in sets:
            tally = _tally(answer_set, judged, source=source)
            line: Cells = [source, answer_set.setting.label]
            line += _cells(answer_set, result, (source,), tally)
            body.append([*line, *tally.cells()])
    head = ["source", "answers from", *SCORES, *_COUNTS]
    return Table("Answers by source", _ABOUT_SOURCES, head, body)


def _table_of_lengths(sets: Sequence[AnswerSet], result: EvaluationResult) -> Table:
    """Return a line for each length of documents that a set has answers on."""
    body: list[Cells] = []
    for answer_set in sets:
        setting = answer_set.setting
        for edge in LENGTH_EDGES:
            means = []
            for name in SCORES:
                means.append(result.find(setting, f"{name}_by_length", edge, "micro"))
            questions = max((row["questions"] for row in means if row), default=0)
            if questions:
                line: Cells = [setting.label, length_name(edge)]
                line += [mean or "-" for mean in means]
                body.append([*line, f"{questions:,}"])
    head = ["answers from", "tokens", *SCORES, "questions"]
    return Table("Answers by length", _ABOUT_LENGTHS, head, body)


def _score_names() -> list[str]:
    names = []
    for name in SCORES:
        names += [name, f"{name}, macro"]
    return names


def _cells(
    answer_set: AnswerSet,
    result: EvaluationResult,
    means: Iterable[str],
    tally: _Tally,
) -> Cells:
    """Return the cells of each score, one for each of the ``means``."""
    cells: Cells = []
    means = tuple(means)
    is_choice = tally.questions > 0 and tally.multiple_choice == tally.questions
    for name in SCORES:
        missing = NOT_APPLICABLE if is_choice and name != "accuracy" else "-"
        for mean in means:
            row = result.find(answer_set.setting, name, None, mean)
            cells.append(row or missing)
    return cells


def _sources(sets: Sequence[AnswerSet]) -> list[str]:
    sources = set()
    for answer_set in sets:
        for document, _, _ in answer_set.answers:
            sources.add(document.source)
    return sorted(sources)


def _tally(
    answer_set: AnswerSet,
    judged: bool,
    source: str | None = None,
    category: str | None = None,
) -> _Tally:
    """Count the questions of a set, of one source or category if it is given."""
    tally = _Tally()
    for document, question, score in answer_set.answers:
        is_other_source = source is not None and document.source != source
        if is_other_source or (category is not None and document.category != category):
            continue
        tally.questions += 1
        tally.multiple_choice += question.is_choice
        tally.failed += score.answer is None
        tally.undecided += judged and _is_undecided(score)
    return tally


def _is_undecided(score: AnswerScore) -> bool:
    return score.answer is not None and score.correct is None
