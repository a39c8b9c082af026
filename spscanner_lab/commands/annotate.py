"""``spscanner annotate``: label the evidence of questions with language models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.commands import run_report
from spscanner_lab.commands.spending_options import SpendingOptions
from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.shared_options import PROGRESS

RESULTS = """\
The folder gets test.jsonl for `spscanner eval`, with the questions whose answer a model
reproduced from the labelled sentences, summary.json, and replies.jsonl with every
prompt and reply. The same command resumes an interrupted run. Exit code: 0 if questions
were labelled, 3 if the run ended early with some, 1 if there are none, 2 for bad input.
"""


@grouped
def annotate(
    files: list[Path] = argument(
        "Question files, .jsonl, whose questions have answers.", "FILE..."
    ),
    out: Path = option(..., "Folder for the results; a run found there resumes."),
    *,
    llm: str = option(
        "scripted",
        "Model that names the sentences each question needs, in windows of 20:"
        " PROVIDER:MODEL, FILE.py:NAME, or scripted, a stand-in that costs nothing.",
    ),
    stronger_llm: str | None = option(
        None,
        "Model that labels windows of 200 sentences where the check failed; default:"
        " that of --llm.",
        "LLM",
    ),
    check_llm: str | None = option(
        None,
        "Model that must give the right answer from the labelled sentences; default:"
        " that of --llm.",
        "LLM",
    ),
    workers: int = option(8, "Documents processed at the same time.", lowest=1),
    spending: SpendingOptions,
    progress: bool | None = PROGRESS,
) -> None:
    """Label which sentences answer the questions of files, and check the labels."""
    from spscanner_lab.annotation.annotating import AnnotationModels
    from spscanner_lab.annotation.annotating import annotate as annotate_files

    models = AnnotationModels(llm, stronger_llm, check_llm)
    with run_report.run_progress(progress, "documents") as show:
        summary = annotate_files(
            files,
            out,
            models,
            prompts=spending.prompts,
            budget=spending.budget(),
            workers=workers,
            notify=tell,
            show=show,
        )
    run_report.end_run(_summary_lines(summary, out), summary)


def _summary_lines(summary: Mapping[str, Any], out: Path) -> list[str]:
    lines = run_report.files_with_lines(summary, out, "documents")
    questions = summary["questions"] + sum(summary["dropped"].values())
    lines.append(
        f"{summary['questions']:,} of {questions:,} questions labelled;"
        f" {run_report.spending(summary)}"
    )
    if "scripted" in summary["models"]:
        lines.append(
            "these labels are from the scripted stand-in, for trying this out: give"
            " --llm for real ones"
        )
    for name in ("dropped", "malformed_replies"):
        lines += run_report.reasons(summary, name)
    return lines
