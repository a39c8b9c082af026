"""What one run of the evaluation asks of whom, and what it makes of the answers: plain, calibrated or rotated."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from spscanner_rag.evaluation.records import Record
from spscanner_rag.evaluation.report.calibration_table import (
    calibration_rows,
    calibration_sections,
    has_probabilities,
)
from spscanner_rag.evaluation.report.result import Result
from spscanner_rag.evaluation.report.rotation_table import (
    RotatedSetting,
    rotated_setting,
    rotation_rows,
    rotation_section,
)
from spscanner_rag.evaluation.report.table import differences_of, rows_of
from spscanner_rag.evaluation.rotation import rotatable
from spscanner_rag.evaluation.run import Layout, Setting, as_it_is
from spscanner_rag.evidence.calibration import THRESHOLD
from spscanner_rag.evidence.questions import Document
from spscanner_rag.evidence.sampling import Asked, sample_questions

Questions = Mapping[str, Sequence[Asked]]
"""By source, from `sample_questions`."""


class Ask(NamedTuple):
    """What `run_setting` is to do."""

    setting: Setting
    retriever: str  # of which the setting is
    questions: Questions
    layout: Layout = as_it_is
    calibrate: bool = False


class Study(Protocol):
    """A kind of run."""

    @property
    def arguments(self) -> dict[str, object]:
        """What must be the same when the run is taken up."""
        ...

    @property
    def asks(self) -> list[Ask]:
        """In the order in which they are done."""
        ...

    def result(self, records: Sequence[Record]) -> Result:
        """From the records of the run."""
        ...


def study_of(
    settings: Sequence[Setting],
    documents: Sequence[Document],
    per_source: int | None = None,
    seed: int = 0,
    *,
    calibration: bool = False,
    rotate: bool = False,
) -> Study:
    """The run that a command line asks for.

    Parameters
    ----------
    settings
        In the order of the tables.
    documents
        With their questions.
    per_source, seed
        As for `sample_questions`.
    calibration, rotate
        At most one of them.

    Raises
    ------
    ValueError
        For documents without a question to ask, for both kinds at once, for a calibration without a scanner,
        and for a rotation that no question's evidence allows.
    """
    if calibration and rotate:
        raise ValueError(
            "got --calibration and --rotate; expected one of them: make two runs, each with its own --out"
        )
    if calibration and not any(has_probabilities(setting.retriever) for setting in settings):
        raise ValueError(
            f"--calibration: got {', '.join(setting.label for setting in settings)}, whose scores are no "
            "probabilities; expected a scanner among --retrievers"
        )
    questions = sample_questions(documents, per_source, seed)
    if not questions:
        raise ValueError("the data have no answerable question with evidence; expected at least one")
    if rotate:
        return RotatedStudy(settings, questions, seed, rotatable(questions))
    if calibration:
        unanswerable = sample_questions(documents, per_source, seed, answerable=False)
        return CalibratedStudy(settings, questions, seed, unanswerable)
    return PlainStudy(settings, questions, seed)


@dataclass(frozen=True)
class PlainStudy:
    """Every setting is asked all questions."""

    settings: Sequence[Setting]
    questions: Questions
    seed: int

    @property
    def arguments(self) -> dict[str, object]:
        """The questions."""
        return {"questions": _digest(self.questions)}

    @property
    def asks(self) -> list[Ask]:
        """One for each setting."""
        return [Ask(setting, setting.retriever, self.questions) for setting in self.settings]

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of metrics, and the first setting against the others."""
        return Result(
            rows_of(records, self.settings, self.seed),
            differences_of(records, self.settings, self.seed),
            self.settings,
        )


@dataclass(frozen=True)
class CalibratedStudy(PlainStudy):
    """Settings whose scores are probabilities are asked the unanswerable questions, too."""

    unanswerable: Questions = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, object]:
        """The questions of both kinds."""
        return super().arguments | {"calibration": _digest(self.unanswerable)}

    @property
    def asks(self) -> list[Ask]:
        """One for each setting; the questions of both kinds in one, so that a document is read once."""
        sources = sorted({*self.questions, *self.unanswerable})
        both = {s: [*self.questions.get(s, ()), *self.unanswerable.get(s, ())] for s in sources}
        return [
            ask._replace(questions=both, calibrate=True) if has_probabilities(ask.retriever) else ask
            for ask in super().asks
        ]

    def result(self, records: Sequence[Record]) -> Result:
        """The plain result, and the calibration."""
        result = super().result([record for record in records if record.answerable])
        calibrated = [setting for setting in self.settings if has_probabilities(setting.retriever)]
        left_out = [setting.label for setting in self.settings if setting not in calibrated]
        rows = calibration_rows(records, calibrated, self.seed)
        content = {"threshold": THRESHOLD, "left_out": left_out, "rows": rows}
        return replace(
            result, sections=calibration_sections(rows, left_out), files={"calibration.json": content}
        )


@dataclass(frozen=True)
class RotatedStudy(PlainStudy):
    """Every setting is asked those questions, on both rotations of their documents, that can be."""

    rotatable: Questions = field(default_factory=dict)

    @property
    def rotated(self) -> list[RotatedSetting]:
        """The settings, each as two."""
        return [rotated_setting(setting) for setting in self.settings]

    @property
    def arguments(self) -> dict[str, object]:
        """The questions, and that they are asked on rotations."""
        return super().arguments | {"rotate": True}

    @property
    def asks(self) -> list[Ask]:
        """Two for each setting."""
        return [
            Ask(setting, rotated.plain.retriever, self.rotatable, layout)
            for rotated in self.rotated
            for setting, layout in rotated.layouts.items()
        ]

    def result(self, records: Sequence[Record]) -> Result:
        """Tables of metrics, the first tenth against the last, and how much of the first is left in the last."""
        settings = [setting for _, *both in self.rotated for setting in both]
        rows = rows_of(records, settings, self.seed)
        ratios = rotation_rows(records, self.rotated, self.questions, self.rotatable, self.seed)
        return Result(
            rows,
            differences_of(records, settings, self.seed, [(first, last) for _, first, last in self.rotated]),
            settings,
            ratios,
            [rotation_section(rows, ratios, self.rotated)],
        )


def _digest(questions: Questions) -> str:
    digest = hashlib.sha256()
    for source, asked in questions.items():
        for document, question in asked:
            line = json.dumps([source, document.doc_id, question.qid, question.text, question.evidence])
            digest.update(line.encode())
    return digest.hexdigest()
