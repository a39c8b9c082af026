"""Reads the data of an evaluation, and makes the study that the options ask for."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spscanner_lab.commands.evaluation_options import EvaluationOptions
from spscanner_lab.evaluation.ablations import ablations
from spscanner_lab.evaluation.judged import is_beir, read_beir
from spscanner_lab.evaluation.judged_study import judged_study_of
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_lab.evidence.chunking import is_chunking, read_chunking
from spscanner_lab.evidence.data_files import read_data_files
from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.baselines.settings import Setting

_MOST_TOLD = 5  # bad lines whose errors are printed


class ChosenStudy(NamedTuple):
    """A study, its documents, and the number of bad lines that were left out."""

    study: Study
    documents: Sequence[Document]
    bad_lines: int = 0


def chosen_study(
    data: Sequence[Path], options: EvaluationOptions, settings: list[Setting]
) -> ChosenStudy:
    """The study that the options ask for, of question files or of a folder."""
    is_judged = len(data) == 1 and is_beir(data[0])
    is_exact = len(data) == 1 and is_chunking(data[0])
    of_folder = is_judged or is_exact
    is_corpus = options.corpus or options.among is not None or of_folder
    plan = _plan(options, is_corpus, is_exact)
    if is_judged:
        return _judged_study(data[0], options, settings, plan)
    if is_exact:
        documents = read_chunking(data[0])
        bad_lines = 0
    else:
        documents, bad_lines = _documents(data, options)
    sample = (options.max_questions, options.seed)
    if is_corpus:
        study = corpus_study_of(settings, documents, plan, *sample)
        return ChosenStudy(study, documents, bad_lines)
    if options.context_ablation:
        settings = [*settings, *ablations(settings)]
    study = study_of(
        settings,
        documents,
        plan,
        *sample,
        calibration=options.calibration,
        answered=options.answers is not None,
    )
    return ChosenStudy(study, documents, bad_lines)


def _plan(
    options: EvaluationOptions, is_corpus: bool, is_exact: bool
) -> EvaluationPlan:
    first_stages = options.stages(is_corpus, few=is_exact)
    form = options.form
    return EvaluationPlan(
        first_stages=first_stages,
        read_documents=options.read_documents,
        among=options.among,
        characters=options.document_characters,
        cutoffs=options.measured,
        aggregation=form.aggregation,
        unit=form.unit,
        exact=is_exact,
    )


def _judged_study(
    folder: Path,
    options: EvaluationOptions,
    settings: list[Setting],
    plan: EvaluationPlan,
) -> ChosenStudy:
    of_files = "among document_characters held_out max_questions"
    options.refuse(
        of_files, "with a folder in BEIR's layout; expected it with question files"
    )
    judged = read_beir(folder, options.split)
    study = judged_study_of(settings, judged, plan, options.seed)
    return ChosenStudy(study, judged.documents)


def _documents(
    data: Sequence[Path], options: EvaluationOptions
) -> tuple[list[Document], int]:
    """The documents of the question files, and the number of bad lines left out."""
    errors: list[DataError] = []
    on_bad = errors.append if options.skip_bad else None
    held_out = options.held_out or []
    documents = []
    for document in read_data_files(data, on_bad):
        if document.source not in held_out or is_held_out(document.doc_id):
            documents.append(document)
    for error in errors[:_MOST_TOLD]:
        tell(f"left out: {error}")
    return documents, len(errors)
