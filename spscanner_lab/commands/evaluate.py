"""``spscanner eval``: measure how well retrievers find evidence for questions."""

from pathlib import Path

import typer

from spscanner_lab.commands.evaluation_options import EvaluationOptions
from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.model_options import RetrieverOptions

RESULTS = """\
The folder gets records.jsonl (one question per line), results.json (one number per
row), differences.json (paired tests of the first retriever against the others),
results.md and results.html; with --calibration also calibration.json, with BEIR a TREC
run for each retriever, with --answers answers.json, answers.jsonl and
answer-replies.jsonl. The same command resumes an interrupted run. Exit code: 0, or 3 if
--max-requests or the provider ended the answers early.
"""

ENDED_EARLY = 3  # exit code when the language model cannot be asked again


@grouped
def evaluate(
    data: list[Path] = argument(
        "Question files (.jsonl, .jsonl.gz), one document per line, ACL-Verbatim's or"
        " HotpotQA's (.json); or a BEIR or Chroma folder.",
        "DATA...",
    ),
    out: Path = option(..., "Folder for the results."),
    *,
    computes: RetrieverOptions,
    options: EvaluationOptions,
) -> None:
    """Measure how retrievers find evidence for questions, in a document or in many."""
    from spscanner_lab.commands.evaluation_run import run_evaluation

    if stopped := run_evaluation(data, options, computes, out):
        tell(
            f"ended early: {stopped}; the same command resumes, and repeats no request"
            " that has a reply"
        )
        raise typer.Exit(ENDED_EARLY)
