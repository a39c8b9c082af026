"""``spscanner eval``: how well retrievers find the evidence of questions on documents."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from spscanner_rag import __version__
from spscanner_rag.apps.cli import arguments
from spscanner_rag.apps.cli.arguments import names_in, optional
from spscanner_rag.apps.cli.evaluation_answers import (
    AnswerForm,
    Answering,
    AnswerOptions,
    Answers,
    DirectAnswers,
    DirectWindow,
    Judge,
    MaxAnswerRequests,
    tell_ended_early,
)
from spscanner_rag.apps.cli.evaluation_options import cutoffs_of, first_stages_of, refuse_with_beir
from spscanner_rag.apps.cli.evaluation_run import documents_of, replies_kept, run_facts, run_study, tell_found

RESULTS = """The folder gets records.jsonl (one question a line), results.json and results.csv (one number a row),
differences.json (paired tests of the first retriever against the others), results.md and results.html; with
--calibration also calibration.json, with BEIR rankings.jsonl and a run of TREC for each retriever, with language
models replies.jsonl, with --answers answers.json, answers.jsonl and answer-replies.jsonl. The same command resumes
an interrupted run. Exit code: 0, or 3 if --max-requests or the provider ended the answers early.
"""


def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA...",
            help="Question files, .jsonl or .jsonl.gz, one document a line; or one folder in BEIR's layout.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    retrievers: Annotated[
        str, typer.Option(help="Comma-separated: scanner[:MODEL], bm25, dense[:MODEL], hybrid:A+B, ...")
    ] = "scanner,bm25,dense",
    unit: Annotated[
        str,
        typer.Option(
            help="Comma-separated: sentence, chunk, passage, document. The scanner has sentences only."
        ),
    ] = "sentence",
    max_questions: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many questions from each source.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which questions, and the intervals.")] = 0,
    held_out: Annotated[
        list[str] | None,
        optional("Only the tenth of these sources' documents that training leaves out.", "SOURCE..."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Count bad lines and go on.")] = False,
    context_ablation: Annotated[
        bool,
        typer.Option(
            "--context-ablation",
            help="Also the bundled scanner on single sentences, on chunks and on windows of 1,024 tokens.",
        ),
    ] = False,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration",
            help="Also test whether the scanner's scores are probabilities, and score unanswerable questions.",
        ),
    ] = False,
    rotate: Annotated[
        bool,
        typer.Option(
            "--rotate",
            help="Ask every question with its evidence in the first and in the last tenth of the document.",
        ),
    ] = False,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus",
            help="Ask every question of all documents of its source together, not of its own alone.",
        ),
    ] = False,
    among: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="With --corpus, or instead: of the right document and the N - 1 hardest others of its source.",
            show_default=False,
        ),
    ] = None,
    first_stage: Annotated[
        str | None,
        optional(
            "With --corpus: comma-separated, what chooses the documents that a retriever without an index reads: "
            "none (all of them), bm25, or a retriever, by its best chunks. Default: bm25; with --among, none."
        ),
    ] = None,
    read_documents: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="With a first stage: at most this many documents are read."),
    ] = 10,
    document_characters: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --corpus: cut longer documents at sentence ends, so that evidence stays in.",
            show_default=False,
        ),
    ] = None,
    cutoffs: Annotated[
        str, typer.Option(metavar="K,...", help="Numbers of units, or of documents of BEIR, to measure at.")
    ] = "",
    aggregation: Annotated[
        str,
        typer.Option(
            help="With --corpus or BEIR, what scores a document by its units: max, mean, mean_top, sum, "
            "logsumexp, first, or long (--unit document)."
        ),
    ] = "max",
    split: Annotated[str, typer.Option(help="With BEIR: which judgements, qrels/SPLIT.tsv.")] = "test",
    answers: Answers = None,
    judge: Judge = None,
    direct_answers: DirectAnswers = False,
    direct_window: DirectWindow = 120_000,
    answer_form: AnswerForm = "sentence",
    max_requests: MaxAnswerRequests = None,
    device: arguments.Device = "auto",
    dtype: arguments.ScannerDtype = "auto",
    threads: arguments.Threads = None,
    trust_remote_code: arguments.TrustRemoteCode = False,
) -> None:
    """Measure how well retrievers find the evidence of questions, in long documents or in many."""
    from spscanner_rag.apps.cli.evaluation_output import show_result, write_result
    from spscanner_rag.baselines.units import segmenter_of
    from spscanner_rag.files.folder_lock import folder_lock, refuse_in_use
    from spscanner_rag.lab.evaluation.ablation import ALONE, CHUNKS, WINDOWS, ablated
    from spscanner_rag.lab.evaluation.corpus_study import CorpusStudy, corpus_study_of
    from spscanner_rag.lab.evaluation.judged.beir import is_beir, read_beir
    from spscanner_rag.lab.evaluation.judged.study import judged_study_of
    from spscanner_rag.lab.evaluation.records import RecordFile
    from spscanner_rag.lab.evaluation.retriever_identity import identity_of
    from spscanner_rag.lab.evaluation.run_file import check_arguments
    from spscanner_rag.lab.evaluation.settings import settings_of
    from spscanner_rag.lab.evaluation.study import Study, study_of
    from spscanner_rag.lab.retriever_names import Options, check_names, scorer_of
    from spscanner_rag.results.document_score import check_aggregation
    from spscanner_rag.scan.threads import use_threads

    names, units = names_in("--retrievers", retrievers), names_in("--unit", unit)
    check_names(names)
    for kind in units:
        segmenter_of(kind)  # type: ignore[arg-type]  # raises an error that lists the kinds
    settings = settings_of(names, units)
    further = [ALONE, CHUNKS, WINDOWS] if context_ablation else []
    measured = cutoffs_of(cutoffs)
    judged_folder = data[0] if len(data) == 1 and is_beir(data[0]) else None
    corpus = corpus or among is not None or judged_folder is not None
    check_aggregation(aggregation)
    if aggregation != "max" and not corpus:
        raise ValueError("got --aggregation without --corpus; expected both, or neither")
    other_run = {"--context-ablation": context_ablation, "--calibration": calibration, "--rotate": rotate}
    answer_options = AnswerOptions(answers, judge, direct_answers, direct_window, answer_form, max_requests)
    stages = first_stages_of(corpus, among, first_stage, document_characters, other_run)
    documents, bad = ([], 0) if judged_folder else documents_of(data, held_out or [], skip_bad)
    study: Study | CorpusStudy
    own: dict[str, Any] = {"cutoffs": measured, "aggregation": aggregation}
    if judged_folder is not None:
        refuse_with_beir(among, document_characters, held_out, max_questions)
        judged = read_beir(judged_folder, split)
        documents = list(judged.documents)
        own |= {"first_stages": stages, "read_documents": read_documents}
        study = judged_study_of(settings, judged, seed, **own)
    elif corpus:
        study = corpus_study_of(
            settings,
            documents,
            max_questions,
            seed,
            first_stages=stages,
            read_documents=read_documents,
            among=among,
            characters=document_characters,
            **own,
        )
    else:
        study = study_of(
            [*settings, *further],
            documents,
            max_questions,
            seed,
            calibration=calibration,
            rotate=rotate,
            cutoffs=measured,
        )
    answering = Answering(answer_options, study) if answers is not None else None
    run_arguments = {
        "max_questions": max_questions,
        "seed": seed,
        "held_out": sorted(held_out or []),
        "device": device,
        "dtype": dtype,
        "trust_remote_code": trust_remote_code,
        "version": __version__,
        **study.arguments,
    }
    refuse_in_use(out)
    check_arguments(out, run_arguments)
    titles: dict[str, str] = {}  # filled by each `run` of the study, read by the scorers
    options = Options("sentence", device, dtype, trust_remote_code, titles)
    asked = list(settings)
    if isinstance(study, CorpusStudy):
        # a text is one of many, and comes back with the next question
        options = replace(options, keep_texts=len(documents) * len({*units, "sentence", "chunk"}))
        asked += study.stages
    use_threads(threads)
    names = list(dict.fromkeys(setting.retriever for setting in asked))
    loaded = {name: scorer_of(name, options) for name in names}  # a missing one is reported before any work
    scorers = {setting: loaded[setting.retriever] for setting in asked}
    if context_ablation:
        scorers |= ablated(device, dtype)
        loaded.setdefault("scanner", scorer_of("scanner", options))  # whose variants they are
    identities = {name: identity_of(name, scorer) for name, scorer in loaded.items()}
    with folder_lock(out) as leftovers:  # the first write, after everything is loaded
        file = RecordFile(out, run_arguments | {"retrievers": identities})
        tell_found(out, len(file.records), len(leftovers))
        with replies_kept(loaded, out / "replies.jsonl"):
            run_study(study, scorers, file, titles)
            result, stopped = study.result(list(file.records.values())), ""
            if answering is not None:
                write_result(result, out, run_facts(bad))  # what an interruption leaves
                result, stopped = answering.added_to(result, scorers, titles, out)
        write_result(result, out, run_facts(bad))
    show_result(result, out)
    if stopped:
        tell_ended_early(stopped)
