"""The kinds of run: which questions each asks, and how it turns records into a result."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.report.calibration_table import calibration_rows, calibration_tables
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rotation_table import rotation_rows, rotation_table
from spscanner_rag.lab.evaluation.report.rows import differences_of, rows_of
from spscanner_rag.lab.evaluation.rotation import LAYOUTS, rotatable
from spscanner_rag.lab.evaluation.run import Layout, as_it_is, run_setting, titled
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.calibration import THRESHOLD
from spscanner_rag.lab.evidence.metrics import CUTOFFS
from spscanner_rag.lab.evidence.questions import Document, QuestionPlaces, document_digest
from spscanner_rag.lab.evidence.sampling import Asked, sample_questions
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens

Questions = Mapping[str, Sequence[Asked]]
"""By source, from `sample_questions`."""


@dataclass(frozen=True)
class Ask:
    """The arguments of one call of `run_setting`."""

    setting: Setting
    scorer: Setting  # the plain setting, whose scorer is asked
    questions: Questions
    layout: Layout = as_it_is
    calibrate: bool = False
    cutoffs: Sequence[int] = CUTOFFS

    def run(
        self,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        count_tokens: CountTokens,
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Ask all questions that have no record; ``titles`` maps the text being read to its document's title."""
        scorer, layout = scorers[self.scorer], titled(self.layout, titles)
        run_setting(
            self.setting,
            scorer,
            self.questions,
            count_tokens,
            file,
            progress,
            layout,
            self.calibrate,
            self.cutoffs,
        )


@dataclass(frozen=True)
class Study:
    """A plain run: every setting is asked all questions."""

    settings: Sequence[Setting]
    questions: Questions
    seed: int
    cutoffs: Sequence[int] = field(default=CUTOFFS, kw_only=True)

    @property
    def arguments(self) -> dict[str, object]:
        """What must not change before the run resumes: a digest of the questions and of their texts."""
        changed = {} if tuple(self.cutoffs) == CUTOFFS else {"cutoffs": list(self.cutoffs)}
        return {"questions": digest_of(self.questions), **changed}

    @property
    def asks(self) -> list[Ask]:
        """What is asked of each setting, in order."""
        return [Ask(setting, setting, self.questions, cutoffs=self.cutoffs) for setting in self.settings]

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of metrics, and the first setting against the others."""
        return Result(
            rows_of(records, self.settings, self.seed),
            differences_of(records, [(self.settings[0], other) for other in self.settings[1:]], self.seed),
            self.settings,
            cutoffs=self.cutoffs,
        )


@dataclass(frozen=True)
class CalibratedStudy(Study):
    """Settings whose scores are probabilities are also asked unanswerable questions."""

    unanswerable: Questions = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, object]:
        """Digests of both kinds of questions."""
        return super().arguments | {"calibration": digest_of(self.unanswerable)}

    @property
    def asks(self) -> list[Ask]:
        """One for each setting, with both kinds of questions together, so that a document is read once."""
        sources = sorted({*self.questions, *self.unanswerable})
        both = {s: [*self.questions.get(s, ()), *self.unanswerable.get(s, ())] for s in sources}
        return [
            replace(ask, questions=both, calibrate=True) if ask.setting.has_probabilities else ask
            for ask in super().asks
        ]

    def result(self, records: Sequence[Record]) -> Result:
        """The plain result, and the calibration."""
        result = super().result([record for record in records if record.answerable])
        calibrated = [setting for setting in self.settings if setting.has_probabilities]
        left_out = [setting.label for setting in self.settings if not setting.has_probabilities]
        rows = calibration_rows(records, calibrated, self.seed)
        content = {"threshold": THRESHOLD, "left_out": left_out, "rows": rows}
        return replace(result, tables=calibration_tables(rows, left_out), files={"calibration.json": content})


@dataclass(frozen=True)
class RotatedStudy(Study):
    """Every setting is asked the questions that fit, on both rotations of their documents."""

    rotatable: Questions = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, object]:
        """The digest of the questions, and that documents are rotated."""
        return super().arguments | {"rotate": True}

    @property
    def asks(self) -> list[Ask]:
        """Two for each setting."""
        return [
            Ask(setting.varied(variant), setting, self.rotatable, layout, cutoffs=self.cutoffs)
            for setting in self.settings
            for variant, layout in LAYOUTS.items()
        ]

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of metrics, the first tenth against the last, and the share of the first left in the last."""
        settings = [ask.setting for ask in self.asks]
        rows = rows_of(records, settings, self.seed)
        pairs = list(zip(settings[::2], settings[1::2], strict=True))
        ratios = rotation_rows(records, self.settings, self.questions, self.rotatable, self.seed)
        return Result(
            rows,
            differences_of(records, pairs, self.seed),
            settings,
            ratios,
            [rotation_table([*rows, *ratios], self.settings)],
            cutoffs=self.cutoffs,
        )


def study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    calibration: bool = False,
    rotate: bool = False,
    cutoffs: Sequence[int] = CUTOFFS,
) -> Study:
    """The run that a command line asks for.

    Settings are in the order of the tables; for ``per_source`` and ``seed`` see `sample_questions`.

    Raises
    ------
    ValueError
        For documents without a question to ask or with one twice, for ``calibration`` and ``rotate`` at once, for
        a calibration without a scanner, and for a rotation that no question's evidence allows.
    """
    if calibration and rotate:
        raise ValueError(
            "got --calibration and --rotate; expected one of them: make two runs, each with its own --out"
        )
    if calibration and not any(setting.has_probabilities for setting in settings):
        raise ValueError(
            f"--calibration: got {', '.join(setting.label for setting in settings)}, whose scores are not "
            "probabilities; expected a scanner among --retrievers"
        )
    check_distinct(documents)
    questions = sample_questions(documents, per_source, seed)
    if not questions:
        raise ValueError("the data have no answerable question with evidence; expected at least one")
    if rotate:
        return RotatedStudy(settings, questions, seed, rotatable(questions), cutoffs=cutoffs)
    if calibration:
        unanswerable = sample_questions(documents, per_source, seed, answerable=False)
        return CalibratedStudy(settings, questions, seed, unanswerable, cutoffs=cutoffs)
    return Study(settings, questions, seed, cutoffs=cutoffs)


def check_distinct(documents: Iterable[Document]) -> None:
    """Raise ``ValueError`` for two questions whose records could not be told apart: one would count for both."""
    places = QuestionPlaces()
    for number, document in enumerate(documents, 1):
        if repeated := places.add(document, f"document {number}"):
            raise ValueError(
                f"got {repeated.name} more than once; expected each once: give each document an id of its own "
                "in its source"
            )


def digest_of(questions: Questions) -> str:
    """Identifies the questions of a run, and the documents that they are asked on."""
    digest = hashlib.sha256()
    documents: dict[int, str] = {}  # their digests by `id`: each is asked many questions
    for source, asked in questions.items():
        for document, question in asked:
            if id(document) not in documents:
                documents[id(document)] = document_digest(document)
            told = [source, document.doc_id, question.qid, question.text, question.evidence]
            digest.update(json.dumps([*told, documents[id(document)]]).encode())
    return digest.hexdigest()
