"""``spscanner annotate``: label the evidence of questions with language models."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_lab.commands import run_report
from spscanner_rag.apps.cli.declaring import argument, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.shared_options import PROGRESS

RESULTS = """\
The folder gets test.jsonl for `spscanner eval`, with the questions whose answer a model
reproduced from the labelled sentences, summary.json, and replies.jsonl with every
prompt and reply. The same command resumes an interrupted run. Exit code: 0 if questions
were labelled, 3 if the run ended early with some, 1 if there are none, 2 for bad input.
"""


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
    prompts: Path | None = option(
        None, "Folder of prompts, which replace the package's by name.", "DIR"
    ),
    workers: int = option(8, "Documents processed at the same time.", lowest=1),
    max_requests: int | None = option(
        None, "Most requests, including the folder's earlier runs.", lowest=0
    ),
    max_cost: float | None = option(
        None, "Most that requests may cost, by --price-*.", lowest=0
    ),
    price_prompt: float = option(
        0.0, "Price of a million prompt tokens, in your currency.", lowest=0
    ),
    price_reply: float = option(0.0, "Price of a million reply tokens.", lowest=0),
    requests_per_minute: float | None = option(
        None, "Most requests per minute; default: no limit.", lowest=1
    ),
    progress: bool = PROGRESS,
) -> None:
    """Label which sentences answer the questions of files, and check the labels."""
    from spscanner_lab.annotation.annotating import AnnotationModels
    from spscanner_lab.annotation.annotating import annotate as annotate_files
    from spscanner_lab.llm.budget import Budget, Prices

    budget = Budget(
        prices=Prices(price_prompt, price_reply),
        max_requests=max_requests,
        max_cost=max_cost,
        per_minute=requests_per_minute,
    )
    models = AnnotationModels(llm, stronger_llm, check_llm)
    with run_report.run_progress(progress, "documents") as show:
        summary = annotate_files(
            files,
            out,
            models,
            prompts=prompts,
            budget=budget,
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
