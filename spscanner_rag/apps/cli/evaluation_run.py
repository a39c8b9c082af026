"""A run of ``spscanner eval`` in a folder, from its options to its files; imported when it begins."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spscanner_rag import __version__
from spscanner_rag.apps.cli.evaluation_options import EvaluationOptions
from spscanner_rag.apps.cli.evaluation_output import show_result, write_result
from spscanner_rag.apps.cli.options import RetrieverOptions, tell
from spscanner_rag.apps.pages.terminal import new_bar, progress_bars
from spscanner_rag.baselines.combined import bundled_token_counter
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.writing import folder_lock, refuse_in_use
from spscanner_rag.lab.answers import answering
from spscanner_rag.lab.evaluation.judged import is_beir, judged_study_of, read_beir, write_runs
from spscanner_rag.lab.evaluation.records import RecordFile, check_arguments, identity_of
from spscanner_rag.lab.evaluation.result import Result
from spscanner_rag.lab.evaluation.run import Plan, processor_name
from spscanner_rag.lab.evaluation.settings import CONTEXTS, Chunked, Setting, ablations
from spscanner_rag.lab.evaluation.study import Study, corpus_study_of, study_of
from spscanner_rag.lab.evidence.questions import (
    DataError,
    Document,
    is_chunking,
    is_held_out,
    read_chunking,
    read_documents,
)
from spscanner_rag.lab.llm.asking import Asker, Budget, ReplyFile
from spscanner_rag.lab.llm.language_models import named_model
from spscanner_rag.lab.retriever_names import scorer_of
from spscanner_rag.scan.devices import use_threads
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.escaping import one_line
from spscanner_rag.text.token_counts import resolve_counter


def run_evaluation(
    data: Sequence[Path], options: EvaluationOptions, computes: RetrieverOptions, out: Path
) -> str:
    """Run in a folder, write all files, show the result, and return why it ended early, if it did.

    What the options name is read and checked before anything is written.
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
    titles: dict[str, str] = {}  # filled by each `run` of the study, read by the scorers
    use_threads(computes.threads)
    loaded, scorers = _scorers(computes, titles, study, len(documents))
    identities = {name: identity_of(scorer) for name, scorer in loaded.items()}
    with folder_lock(out) as leftovers:  # the first write, after everything is loaded
        file = RecordFile(out, run_arguments | {"retrievers": identities})
        if file.records:
            tell(f"{out}: found {len(file.records):,} records of an earlier run, which are kept")
        if leftovers:
            tell(f"{out}: removed {len(leftovers):,} unfinished files of a run that was killed")
        count_tokens = bundled_token_counter()  # the same for all settings, and offline
        with progress_bars(None) as bars:
            for ask in study.asks:
                ask.run(scorers, titles, count_tokens, file, new_bar(bars, ask.setting.label))
        records = list(file.records.values())
        write_runs(records, [ask.setting for ask in study.asks if ask.qrels is not None], out)
        result, stopped = study.result(records), ""
        if answers is not None:
            write_result(result, out, _run_facts(bad))  # what an interruption leaves
            result, stopped = answers.added_to(result, scorers, titles, out)
        write_result(result, out, _run_facts(bad))
    show_result(result, out)
    return stopped


def _study_of(
    data: Sequence[Path], options: EvaluationOptions, settings: list[Setting]
) -> tuple[Study, list[Document], int]:
    """The study, its documents, and the number of their bad lines that were left out."""
    sample = options.max_questions, options.seed
    judged_folder = data[0] if len(data) == 1 and is_beir(data[0]) else None
    exact = len(data) == 1 and is_chunking(data[0])
    is_corpus = options.corpus or options.among is not None or judged_folder is not None or exact
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
        options.refuse(of_files, "with a folder in BEIR's layout; expected it with question files")
        judged = read_beir(judged_folder, options.split)
        return judged_study_of(settings, judged, plan, options.seed), list(judged.documents), 0
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


def _documents(data: Sequence[Path], options: EvaluationOptions) -> tuple[list[Document], int]:
    """The documents of question files, and how many bad lines were left out."""
    bad: list[DataError] = []
    every = read_documents(data, bad.append if options.skip_bad else None, distinct=True)
    held_out = options.held_out or []
    documents = [own for own in every if own.source not in held_out or is_held_out(own.doc_id)]
    for error in bad[:5]:
        tell(f"left out: {error}")
    return documents, len(bad)


def _scorers(
    computes: RetrieverOptions, titles: dict[str, str], study: Study, documents: int
) -> tuple[dict[str, Scorer], dict[Setting, Scorer]]:
    """The scorers by name and by setting; a missing one is reported before any work."""
    loading = computes.loading(titles=titles)
    if study.of_corpora:
        # a text is one of many, and comes back with the next question
        kinds = {*computes.units, "sentence", "chunk"}
        loading = replace(loading, keep_texts=documents * len(kinds))
    asked = [*study.settings, *study.stages]
    loaded = {name: scorer_of(name, loading) for name in dict.fromkeys(each.retriever for each in asked)}
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
    """The answers to the questions of a study, whose models are loaded before any work.

    ``ValueError`` or ``ImportError`` for questions that are not on single documents or have no answers, or no
    model.
    """

    def __init__(self, options: EvaluationOptions, study: Study) -> None:
        if study.of_corpora:
            raise ValueError(
                "got --answers with --corpus, --among or a folder in BEIR's layout; expected questions "
                "on single documents: make two runs, each with its own --out"
            )
        self.options, self.study = options, study
        self.questions = answering.questions_with_answers(study.questions)
        judge = None if options.judge is None else named_model(options.judge)
        self.models = named_model(options.answers or ""), judge
        self.count_tokens = resolve_counter("o200k_base")

    def added_to(
        self, result: Result, scorers: Mapping[Setting, Scorer], titles: dict[str, str], out: Path
    ) -> tuple[Result, str]:
        """The result with the answers, and why asking ended early, if it did; ``answers.jsonl`` is written."""
        options = self.options
        replies = ReplyFile(out / "answer-replies.jsonl")
        budget = Budget(max_requests=options.max_requests, requests=replies.attempts, usage=replies.usage)
        asker = Asker(replies=replies, budget=budget, count_tokens=self.count_tokens, retries=5)
        settings, units, words = self.study.settings, options.answer_units, options.answer_words
        sources = {s: answering.retriever_contexts(s, scorers[s], titles, units, words) for s in settings}
        if options.direct_answers:
            window = options.direct_window
            sources[answering.WHOLE_DOCUMENT] = lambda own, _: answering.document_windows(own.text, window)
        sets: list[answering.AnswerSet] = []
        with progress_bars(None) as bars:
            for setting, contexts in sources.items():
                show = new_bar(bars, f"answers from {setting.label}")
                form: Any = options.answer_form  # one of the known ones
                asked = setting, contexts, self.questions, *self.models
                sets.append(answering.answer_from(*asked, asker, form, show))
        rows = answering.answer_rows(sets, self.study.seed)
        lines = [json.dumps(line) + "\n" for line in answering.answer_lines(sets)]
        write_whole(out / "answers.jsonl", "".join(lines))
        content = {
            "model": options.answers,
            "judge": options.judge,
            "form": options.answer_form,
            "spent": {"requests": replies.attempts, **replies.usage._asdict()},
            "asked": list(map(answering.counts_of, sets)),
            "rows": rows,
        }
        tables = [*result.tables, *answering.answer_tables(sets, rows, options.judge is not None)]
        return replace(result, tables=tables, files={**result.files, "answers.json": content}), budget.stopped
