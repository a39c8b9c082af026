"""Studies: which questions a run asks of each setting, and what its records become."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

from spscanner_lab.evaluation.calibration_rows import (
    calibration_rows,
    calibration_tables,
)
from spscanner_lab.evaluation.corpora import (
    SourceCorpus,
    corpora_of,
    documents_alone,
)
from spscanner_lab.evaluation.first_stage import NO_STAGE, WORDS
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.result_tables import (
    characters_table,
    corpora_table,
    documents_table,
)
from spscanner_lab.evaluation.rows import TESTED, differences_of, rows_of
from spscanner_lab.evaluation.run_arguments import Questions, arguments_of, digest_of
from spscanner_lab.evaluation.setting_run import SettingRun
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.evidence.calibration import THRESHOLD
from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import sample_questions
from spscanner_rag.baselines.settings import Setting

DOCUMENT_TESTED = (
    ("document_mrr", "recall@10"),
    ("document_mrr", "recall_at_tokens@1000"),
)
"""Metrics of the paired tests on corpora, within one unit and across units."""


def _setting_of(setting_run: SettingRun) -> Setting:
    return setting_run.setting


def no_tables(result: EvaluationResult) -> Sequence[Table]:
    """The additional tables of a study that has none."""
    return ()


@dataclass(frozen=True)
class Study:
    """A run: what each setting is asked, and how its records become a result.

    Parameters
    ----------
    settings : sequence of Setting
        Plain settings, in the order of the tables.
    questions : mapping
        The questions of each source, with their documents.
    seed : int
        The seed of the intervals.
    setting_runs : sequence of SettingRun
        What each setting is asked.
    arguments : mapping
        What must be the same when the run resumes.
    plan : EvaluationPlan
        How questions are asked.
    tested : tuple
        The metrics of paired tests, within one unit and across units.
    tables : callable
        Returns the additional tables of a result.
    """

    settings: Sequence[Setting]
    questions: Questions
    seed: int
    setting_runs: Sequence[SettingRun]
    arguments: Mapping[str, object]
    plan: EvaluationPlan
    tested: tuple[Sequence[str], Sequence[str]] = TESTED
    tables: Callable[[EvaluationResult], Sequence[Table]] = no_tables

    @property
    def of_corpora(self) -> bool:
        """Whether a question is asked of many documents together."""
        return any(setting_run.together for setting_run in self.setting_runs)

    @property
    def stages(self) -> list[Setting]:
        """The settings whose scorers serve as first stages."""
        stages = []
        for setting_run in self.setting_runs:
            stage = setting_run.stage
            if isinstance(stage, Setting) and stage not in stages:
                stages.append(stage)
        return stages

    def result(self, records: Sequence[Record]) -> EvaluationResult:
        """Rows of metrics, paired tests, and the study's own tables.

        The first setting is tested against each other one.
        """
        settings = list(map(_setting_of, self.setting_runs))
        answerable = [record for record in records if record.answerable]
        rows = rows_of(answerable, settings, self.seed)
        pairs = list(zip(repeat(settings[0]), settings[1:], strict=False))
        differences = differences_of(answerable, pairs, self.seed, self.tested)
        cutoffs = self.plan.cutoffs
        result = EvaluationResult(rows, differences, settings, cutoffs=cutoffs)
        calibrated = []
        for setting_run in self.setting_runs:
            if setting_run.calibrate:
                calibrated.append(setting_run.setting)
        if calibrated:
            return self._with_calibration(result, records, calibrated)
        return replace(result, tables=self.tables(result))

    def _with_calibration(
        self,
        result: EvaluationResult,
        records: Sequence[Record],
        calibrated: Sequence[Setting],
    ) -> EvaluationResult:
        left_out = []
        for setting in result.settings:
            if setting not in calibrated:
                left_out.append(setting.label)
        rates = calibration_rows(records, calibrated, self.seed)
        content = {"threshold": THRESHOLD, "left_out": left_out, "rows": rates}
        tables = calibration_tables(rates, left_out)
        return replace(result, tables=tables, files={"calibration.json": content})


def study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    plan: EvaluationPlan,
    per_source: int | None = None,
    seed: int = 0,
    *,
    calibration: bool = False,
    answered: bool = False,
) -> Study:
    """The run that a command line asks for, on single documents.

    ``ValueError`` if there is nothing to ask.

    With ``answered`` it includes questions that have right answers to compare with, but
    no evidence. With ``calibration`` the settings with probabilities are also asked
    unanswerable questions, in the same call.
    """
    calibrated: list[Setting] = []
    if calibration:
        calibrated = _with_probabilities(settings)
    questions = sample_questions(documents, per_source, seed, answered=answered)
    if not questions:
        wanted = "evidence or answers" if answered else "evidence"
        raise ValueError(
            f"the data have no answerable question with {wanted}; expected at least"
            " one: for questions that have answers, `spscanner annotate` labels the"
            " evidence, and --answers needs none"
        )
    unanswerable: Questions = {}
    if calibration:
        unanswerable = sample_questions(documents, per_source, seed, answerable=False)
    all_questions = _joined(questions, unanswerable)
    setting_runs = []
    for setting in settings:
        calibrate = setting in calibrated
        questions_of_setting = all_questions if calibrate else questions
        corpora = partial(documents_alone, questions_of_setting)
        setting_runs.append(
            SettingRun(setting, setting, corpora, plan, calibrate=calibrate)
        )
    arguments = arguments_of([], questions, plan)
    if calibration:
        arguments["calibration"] = digest_of(unanswerable)
    return Study(settings, questions, seed, setting_runs, arguments, plan)


def _with_probabilities(settings: Sequence[Setting]) -> list[Setting]:
    calibrated = [setting for setting in settings if setting.has_probabilities]
    if not calibrated:
        labels = ", ".join(setting.label for setting in settings)
        raise ValueError(
            f"--calibration: got {labels}, whose scores are not probabilities; expected"
            " a scanner among --retrievers"
        )
    return calibrated


def _joined(first: Questions, second: Questions) -> Questions:
    """The questions of both, by source in alphabetical order."""
    joined = {}
    for source in sorted({*first, *second}):
        joined[source] = [*first.get(source, ()), *second.get(source, ())]
    return joined


def corpus_study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    plan: EvaluationPlan,
    per_source: int | None = None,
    seed: int = 0,
) -> Study:
    """The run that asks each question of all documents of its source together."""
    settings = settings_in(plan, settings)
    least = plan.among or (1 if plan.exact else 2)
    corpora = corpora_of(
        documents, per_source, seed, least=least, characters=plan.characters
    )
    questions = {}
    for corpus in corpora:
        questions[corpus.source] = corpus.questions

    def tables(result: EvaluationResult) -> list[Table]:
        tables = [documents_table(result), corpora_table(corpora)]
        if plan.exact:
            tables.append(characters_table(result))
        return tables

    return Study(
        settings,
        questions,
        seed,
        setting_runs=list(runs_on_corpora(settings, corpora, plan)),
        arguments=arguments_of(corpora, questions, plan),
        tested=DOCUMENT_TESTED,
        plan=plan,
        tables=tables,
    )


def settings_in(plan: EvaluationPlan, settings: Sequence[Setting]) -> list[Setting]:
    """The settings of a plan, all with its unit if it has one."""
    if plan.unit is None:
        return list(settings)
    with_unit = [replace(setting, unit=plan.unit) for setting in settings]
    return list(dict.fromkeys(with_unit))


def runs_on_corpora(
    settings: Sequence[Setting], corpora: Sequence[SourceCorpus], plan: EvaluationPlan
) -> Iterator[SettingRun]:
    """One `SettingRun` for each setting and first stage.

    Retrievers that have an index read everything.
    """
    kinds = {setting.unit.partition(":")[0] for setting in settings}
    if plan.aggregation == "long" and kinds != {"document"}:
        raise ValueError(
            '--aggregation: got "long" for units that are parts of documents; expected'
            " --unit document, and a retriever that reads them whole"
        )
    for setting in settings:
        stages = [NO_STAGE] if setting.has_index else plan.first_stages
        for name in stages:
            stage = _stage(name)
            variants: tuple[str, ...] = ()
            if stage is not None:
                variants = (f"{plan.read_documents} documents by {name}",)
            variant = replace(setting, variants=variants)
            yield SettingRun(
                variant, setting, lambda: corpora, plan, stage, together=True
            )


def _stage(name: str) -> Setting | str | None:
    """The first stage of a name, as `SettingRun` has it."""
    if name == NO_STAGE:
        return None
    if name == WORDS:
        return WORDS
    return Setting(name, "chunk")
