"""``spscanner eval``: how well retrievers find the evidence of questions on documents."""

from pathlib import Path

import typer

from spscanner_rag.apps.cli.evaluation_options import EvaluationOptions
from spscanner_rag.apps.cli.options import RetrieverOptions, argument, grouped, option, tell

RESULTS = """The folder gets records.jsonl (one question a line), results.json (one number a row),
differences.json (paired tests of the first retriever against the others), results.md and results.html; with
--calibration also calibration.json, with BEIR a run of TREC for each retriever, with --answers answers.json,
answers.jsonl and answer-replies.jsonl. The same command resumes an interrupted run. Exit code: 0, or 3 if
--max-requests or the provider ended the answers early.
"""

ENDED_EARLY = 3  # exit code of a run whose model may not be asked more


@grouped
def evaluate(
    data: list[Path] = argument(
        "Question files (.jsonl, .jsonl.gz), a document a line; or a folder, BEIR's or Chroma's.", "DATA..."
    ),
    out: Path = option(..., "Folder for the results."),
    *,
    computes: RetrieverOptions,
    options: EvaluationOptions,
) -> None:
    """Measure how well retrievers find the evidence of questions, in long documents or in many."""
    from spscanner_rag.apps.cli.evaluation_run import run_evaluation

    if stopped := run_evaluation(data, options, computes, out):
        tell(f"ended early: {stopped}; the same command goes on, and asks nothing again that has a reply")
        raise typer.Exit(ENDED_EARLY)
