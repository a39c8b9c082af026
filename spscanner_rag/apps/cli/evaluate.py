"""``spscanner eval``: how well retrievers find the evidence of questions on documents."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spscanner_rag import __version__
from spscanner_rag.apps.cli.evaluation_options import (
    AnswerOptions,
    Compared,
    CorpusOptions,
    QuestionOptions,
    Variants,
)
from spscanner_rag.apps.cli.options import RetrieverOptions, argument, grouped, option, tell
from spscanner_rag.apps.pages.terminal import open_console, progress_bars
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.lab.answers.prompts import AnswerLength
    from spscanner_rag.lab.evaluation.answer_run import AnswerSet, AnswerSource
    from spscanner_rag.lab.evaluation.records import RecordFile
    from spscanner_rag.lab.evaluation.result import Result
    from spscanner_rag.lab.evaluation.settings import Setting
    from spscanner_rag.lab.evaluation.study import Study
    from spscanner_rag.lab.evidence.questions import Document
    from spscanner_rag.lab.llm.asking import Asker
    from spscanner_rag.scorers import Scorer

RESULTS = """The folder gets records.jsonl (one question a line), results.json (one number a row),
differences.json (paired tests of the first retriever against the others), results.md and results.html; with
--calibration also calibration.json, with BEIR rankings.jsonl and a run of TREC for each retriever, with --answers
answers.json, answers.jsonl and answer-replies.jsonl. The same command resumes an interrupted run. Exit code: 0, or
3 if --max-requests or the provider ended the answers early.
"""

ENDED_EARLY = 3  # exit code of a run whose model may not be asked more


@grouped
def evaluate(
    data: list[Path] = argument(
        "Question files, .jsonl or .jsonl.gz, one document a line; or one folder, BEIR's or Chroma's.",
        "DATA...",
    ),
    out: Path = option(..., "Folder for the results."),
    *,
    compared: Compared,
    which: QuestionOptions,
    variants: Variants,
    of_many: CorpusOptions,
    answers: AnswerOptions,
    computes: RetrieverOptions,
) -> None:
    """Measure how well retrievers find the evidence of questions, in long documents or in many."""
    from spscanner_rag.apps.cli.evaluation_output import show_result, write_result
    from spscanner_rag.files.folder_lock import folder_lock, refuse_in_use
    from spscanner_rag.lab.evaluation.records import RecordFile, check_arguments
    from spscanner_rag.lab.evaluation.retriever_identity import identity_of

    answered = answers.answers is not None
    study, documents, bad = _study(data, compared, which, variants, of_many, answered)
    answering = _Answering(answers, study) if answered else None
    run_arguments = {
        "max_questions": which.max_questions,
        "seed": which.seed,
        "held_out": sorted(which.held_out or []),
        "device": computes.device,
        "dtype": computes.dtype,
        "trust_remote_code": computes.trust_remote_code,
        "version": __version__,
        **study.arguments,
    }
    refuse_in_use(out)
    check_arguments(out, run_arguments)
    titles: dict[str, str] = {}  # filled by each `run` of the study, read by the scorers
    loaded, scorers = _scorers(study, compared, len(documents), variants, computes, titles)
    identities = {name: identity_of(name, scorer) for name, scorer in loaded.items()}
    with folder_lock(out) as leftovers:  # the first write, after everything is loaded
        file = RecordFile(out, run_arguments | {"retrievers": identities})
        if file.records:
            tell(f"{out}: found {len(file.records):,} records of an earlier run, which are kept")
        if leftovers:
            tell(f"{out}: removed {len(leftovers):,} unfinished files of a run that was killed")
        _run_study(study, scorers, file, titles)
        result, stopped = study.result(list(file.records.values())), ""
        if answering is not None:
            write_result(result, out, _run_facts(bad))  # what an interruption leaves
            result, stopped = answering.added_to(result, scorers, titles, out)
        write_result(result, out, _run_facts(bad))
    show_result(result, out)
    if stopped:
        tell(f"ended early: {stopped}; the same command goes on, and asks nothing again that has a reply")
        raise typer.Exit(ENDED_EARLY)


def _study(
    data: Sequence[Path],
    compared: Compared,
    which: QuestionOptions,
    variants: Variants,
    of_many: CorpusOptions,
    answered: bool,
) -> "tuple[Study, list[Document], int]":
    """Return the study, its documents, and the number of their bad lines that were left out."""
    from spscanner_rag.lab.evaluation.ablation import ablations, scanners_among
    from spscanner_rag.lab.evaluation.judged import is_beir, judged_study_of, read_beir
    from spscanner_rag.lab.evaluation.study import corpus_study_of, study_of
    from spscanner_rag.lab.evidence.chunking import is_chunking, read_chunking

    settings, measured = compared.settings, of_many.measured()
    judged_folder = data[0] if len(data) == 1 and is_beir(data[0]) else None
    exact = len(data) == 1 and is_chunking(data[0])
    is_corpus = of_many.corpus or of_many.among is not None or judged_folder is not None or exact
    stages = of_many.stages(is_corpus, variants, few=exact)
    own: dict[str, Any] = {"cutoffs": measured, "aggregation": of_many.aggregation, "first_stages": stages,
                           "read_documents": of_many.read_documents}  # fmt: skip
    if judged_folder is not None:
        of_files = {"--among": of_many.among, "--document-characters": of_many.document_characters,
                    "--held-out": which.held_out, "--max-questions": which.max_questions}  # fmt: skip
        for name, value in of_files.items():
            if value is not None:
                raise ValueError(
                    f"got {name} with a folder in BEIR's layout; expected it with question files"
                )
        judged = read_beir(judged_folder, of_many.split)
        return judged_study_of(settings, judged, which.seed, **own), list(judged.documents), 0
    documents, bad = (
        (read_chunking(data[0]), 0) if exact else _documents_of(data, which.held_out or [], which.skip_bad)
    )
    if is_corpus:
        corpus_study = corpus_study_of(
            settings,
            documents,
            which.max_questions,
            which.seed,
            among=of_many.among,
            characters=of_many.document_characters,
            exact=exact,
            **own,
        )
        return corpus_study, documents, bad
    scanners = scanners_among(settings) if variants.context_ablation else []
    study = study_of(
        [*settings, *(shorter for name in scanners for shorter in ablations(name))],
        documents,
        which.max_questions,
        which.seed,
        calibration=variants.calibration,
        cutoffs=measured,
        answered=answered,
    )
    return study, documents, bad


def _scorers(
    study: "Study",
    compared: Compared,
    documents: int,
    variants: Variants,
    computes: RetrieverOptions,
    titles: dict[str, str],
) -> "tuple[dict[str, Scorer], dict[Setting, Scorer]]":
    """The scorers by name and by setting; a missing one is reported before any work."""
    from spscanner_rag.lab.evaluation.ablation import ablated, scanners_among
    from spscanner_rag.lab.retriever_names import scorer_of
    from spscanner_rag.scan.devices import use_threads

    options = computes.loading(titles=titles)
    asked = list(compared.settings)
    if study.kind in ("corpora", "judged"):
        # a text is one of many, and comes back with the next question
        options = replace(options, keep_texts=documents * len({*compared.units, "sentence", "chunk"}))
        asked += study.stages
    use_threads(computes.threads)
    loaded = {name: scorer_of(name, options) for name in dict.fromkeys(each.retriever for each in asked)}
    scorers = {setting: loaded[setting.retriever] for setting in asked}
    if variants.context_ablation:
        for name in scanners_among(compared.settings):
            scorers |= ablated(name, options)
            loaded.setdefault(name, scorer_of(name, options))  # whose variants they are
    return loaded, scorers


def _run_facts(bad: int) -> dict[str, str]:
    """Facts about the run for its report."""
    from spscanner_rag.scan.devices import processor_name

    return {
        "Command": one_line(shlex.join(["spscanner", *sys.argv[1:]])),
        "Machine": f"{processor_name()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "Date": datetime.now(UTC).date().isoformat(),
        "Lines left out": str(bad),
    }


def _documents_of(
    paths: Sequence[Path], held_out: Sequence[str], skip_bad: bool
) -> tuple[list["Document"], int]:
    """The documents of question files, and how many bad lines were left out."""
    from spscanner_rag.lab.evidence.questions import DataError, read_documents
    from spscanner_rag.lab.evidence.sampling import only_held_out

    bad: list[DataError] = []
    every = read_documents(paths, bad.append if skip_bad else None, distinct=True)
    documents = list(only_held_out(every, held_out))
    for error in bad[:5]:
        tell(f"left out: {error}")
    return documents, len(bad)


def _run_study(
    study: "Study", scorers: dict["Setting", "Scorer"], file: "RecordFile", titles: dict[str, str]
) -> None:
    """Ask every question of a study that has no record yet, and show the progress."""
    from spscanner_rag.scan.prepare import bundled_token_counter

    count_tokens = bundled_token_counter()  # the same for all settings, and offline
    console = open_console(sys.stderr)
    with progress_bars(console, disable=not console.is_terminal) as bars:
        for ask in study.asks:
            bar = bars.add_task(one_line(ask.setting.label), total=None)

            def show(done: int, total: int, bar: Any = bar) -> None:  # noqa: ANN401 - rich's own number
                bars.update(bar, completed=done, total=total)

            ask.run(scorers, titles, count_tokens, file, show)


class _Answering:
    """The answers to the questions of a study, whose models are loaded before any work.

    ``ValueError`` or ``ImportError`` for questions that are not on single documents or have no answers, or no
    model.
    """

    def __init__(self, options: AnswerOptions, study: "Study") -> None:
        from spscanner_rag.lab.evaluation.answer_run import questions_with_answers
        from spscanner_rag.lab.llm.language_models import named_model
        from spscanner_rag.text.token_counts import resolve_counter

        if study.kind != "documents":
            raise ValueError(
                "got --answers with --corpus, --among or a folder in BEIR's layout; expected questions "
                "on single documents: make two runs, each with its own --out"
            )
        self.options, self.study = options, study
        self.questions = questions_with_answers(study.questions)
        self.model = named_model(options.answers or "")
        self.judge = None if options.judge is None else named_model(options.judge)
        self.count_tokens = resolve_counter("o200k_base")

    def added_to(
        self, result: "Result", scorers: Mapping["Setting", "Scorer"], titles: dict[str, str], out: Path
    ) -> tuple["Result", str]:
        """The result with the answers, and why asking ended early, if it did; ``answers.jsonl`` is written."""
        from spscanner_rag.checkpoint.whole_file import write_whole
        from spscanner_rag.lab.evaluation.answer_run import (
            answer_lines,
            answer_rows,
            answer_table,
            length_table,
            retriever_sources,
            whole_documents,
        )
        from spscanner_rag.lab.llm.asking import Asker, Budget
        from spscanner_rag.lab.llm.replies import ReplyFile

        units, words = self.options.answer_units, self.options.answer_words
        sources = retriever_sources(self.study.settings, scorers, titles, units, words)
        if self.options.direct_answers:
            sources.append(whole_documents(self.options.direct_window))
        with ReplyFile(out / "answer-replies.jsonl") as replies:
            budget = Budget(
                max_requests=self.options.max_requests, requests=replies.attempts, usage=replies.usage
            )
            asker = Asker(replies=replies, budget=budget, count_tokens=self.count_tokens, retries=5)
            sets = self._answer_sets(sources, asker)
            prompt_tokens, reply_tokens = replies.usage
            spent = {
                "requests": replies.attempts, "prompt_tokens": prompt_tokens, "reply_tokens": reply_tokens,
            }  # fmt: skip
        rows = answer_rows(sets, self.study.seed)
        write_whole(out / "answers.jsonl", "".join(f"{json.dumps(line)}\n" for line in answer_lines(sets)))
        named = {"model": self.options.answers, "judge": self.options.judge, "form": self.options.answer_form}
        tables = [answer_table(sets, rows, self.judge is not None), length_table(rows)]
        found = replace(
            result,
            tables=[*result.tables, *tables],
            files={**result.files, "answers.json": {**named, "spent": spent, "rows": rows}},
        )
        return found, budget.stopped

    def _answer_sets(self, sources: "Sequence[AnswerSource]", asker: "Asker") -> "list[AnswerSet]":
        from spscanner_rag.lab.evaluation.answer_run import answer_from

        sets = []
        console = open_console(sys.stderr)
        with progress_bars(console, disable=not console.is_terminal) as bars:
            for source in sources:
                bar = bars.add_task(one_line(f"answers from {source.label}"), total=None)

                def show(done: int, bar: Any = bar) -> None:  # noqa: ANN401 - rich's own number
                    bars.update(bar, completed=done)

                form: AnswerLength | None = self.options.answer_form  # type: ignore[assignment]  # or refused
                shown = replace(asker, progress=show)
                sets.append(answer_from(source, self.questions, self.model, self.judge, shown, form))
        return sets
