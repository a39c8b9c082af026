"""Whether a scanner ranks better with a multiple of the logarithm of a sentence's length added to its logit.

Long sentences hold more words of a question than short ones. The weight is the one with the best ranks on training
questions; nothing is trained.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spscanner_rag.lab.evidence.sampling import Asked
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.text.units import Unit

WEIGHTS = (-1.0, -0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0)


class LengthNormalized:
    """A scanner whose logits are shifted by ``weight`` times the natural logarithm of a unit's tokens."""

    def __init__(self, scanner: Scanner, weight: float) -> None:
        self.scanner, self.weight = scanner, weight

    @property
    def segment(self) -> Callable[[str], list[Unit]]:
        """The scanner's."""
        return self.scanner.segment

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """One logit for each unit: (units,)."""
        logits = self.scanner.score_units(query, text, units)
        return logits + np.float32(self.weight) * _log_tokens(self.scanner, units)


def fitted_weight(scanner: Scanner, questions: Mapping[str, Sequence[Asked]]) -> float:
    """The one of `WEIGHTS` with the best macro nDCG@10; of equal ones the smallest."""
    readings = [found for asked in questions.values() if (found := list(_readings(scanner, asked)))]

    def macro_ndcg(weight: float) -> float:
        return statistics.mean(statistics.mean(_ndcg(one, weight) for one in source) for source in readings)

    return max(sorted(WEIGHTS, key=abs), key=macro_ndcg)


def ask_length_normalized(checkpoint: Path, fit_on: Path, questions: Path, folder: Path) -> None:
    """Fit the weight and ask the questions, as `spscanner eval` would, into a folder.

    Parameters
    ----------
    checkpoint : Path
    fit_on, questions : Path
        Files of questions; the weight is fitted on questions about training documents.
    folder : Path
        Gets the files of an evaluation; ``results.html`` names the weight.
    """
    from spscanner_rag.apps.cli.evaluation_output import write_result
    from spscanner_rag.files.folder_lock import folder_lock
    from spscanner_rag.lab.evaluation.records import RecordFile
    from spscanner_rag.lab.evaluation.retriever_identity import identity_of
    from spscanner_rag.lab.evaluation.run import run_setting
    from spscanner_rag.lab.evaluation.settings import Setting
    from spscanner_rag.lab.evaluation.study import study_of
    from spscanner_rag.lab.evidence.questions import read_documents
    from spscanner_rag.lab.evidence.sampling import sample_questions
    from spscanner_rag.scan.prepare import bundled_token_counter
    from spscanner_rag.scanner import Scanner

    scanner = Scanner.from_pretrained(checkpoint)
    weight = fitted_weight(scanner, sample_questions(read_documents([fit_on])))
    setting = Setting(f"scanner:{checkpoint} + {weight} log tokens")
    study = study_of([setting], list(read_documents([questions])))
    arguments = study.arguments | {"weight": weight, "model": identity_of("scanner", scanner)}
    with folder_lock(folder):
        file = RecordFile(folder, arguments)
        for ask in study.asks:
            run_setting(
                setting, LengthNormalized(scanner, weight), ask.questions, bundled_token_counter(), file
            )
        write_result(study.result(list(file.records.values())), folder, {"Weight": str(weight)})


class _Reading(NamedTuple):
    logits: NDArray[np.float32]  # (units,)
    log_tokens: NDArray[np.float32]  # (units,)
    relevant: NDArray[np.bool_]  # (units,)


def _readings(scanner: Scanner, asked: Sequence[Asked]) -> Iterator[_Reading]:
    from spscanner_rag.results.coverage import relevant_units

    for document, question in asked:
        units = scanner.segment(document.text)
        starts, ends = np.array([unit[:2] for unit in units], np.int64).reshape(-1, 2).T
        relevant = relevant_units(starts, ends, question.evidence)
        if relevant.any():
            logits = scanner.score_units(question.text, document.text, units)
            yield _Reading(logits, _log_tokens(scanner, units), relevant)


def _ndcg(reading: _Reading, weight: float) -> float:
    from spscanner_rag.lab.evidence.metrics import Measure, ranking_metrics

    scores = reading.logits + np.float32(weight) * reading.log_tokens
    return ranking_metrics(scores, reading.relevant)[Measure("ndcg", 10)]


def _log_tokens(scanner: Scanner, units: Sequence[Unit]) -> NDArray[np.float32]:
    return np.log([max(1, scanner.count_tokens(unit.model_text)) for unit in units]).astype(np.float32)
