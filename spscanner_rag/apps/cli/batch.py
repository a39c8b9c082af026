"""``spscanner batch``: scan many questions and documents from files.

An interrupted run keeps finished parts.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.model_options import ScannerOptions, read_of
from spscanner_rag.apps.cli.selection import SelectionOptions, selection_options
from spscanner_rag.apps.cli.shared_options import MODEL, PROGRESS, SEGMENT_TOKENS
from spscanner_rag.files.formats import formats_in_words
from spscanner_rag.scorers import check_query
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.apps.batch.plan import Plan
    from spscanner_rag.apps.batch.rows import Query
    from spscanner_rag.apps.batch.run import FinishAll, Progress
    from spscanner_rag.apps.batch.tables import Columns
    from spscanner_rag.apps.batch.worker import BatchTask

RESULTS = """The folder gets part-000000.parquet and so on (.jsonl without pyarrow).
It has a row for each pair:

\b
id, query_id, document_score, sentence_count, tokens, error,
sentences: [{start, end, score, logit, text, section}], the best first

A row that cannot be scanned has an error and no score. The same command resumes an
interrupted run.
Exit code: 0 if all parts were written, 3 if some were not.
"""
INCOMPLETE = 3

_INPUTS = argument(
    f"Parquet or JSONL files; with --query or --queries also {formats_in_words()}; or"
    " folders, or addresses such as s3://BUCKET/FOLDER.",
    "INPUT...",
)
_FAILURES_SHOWN = 10
_LONGEST_ID_SHOWN = 80
_ROWS_OF_QUERIES = 10_000


@selection_options(
    redeclared={
        "top_k": option(
            "10",
            "Sentences to keep from each document: a number, a share below 1 (at least"
            ' 10), "elbow" or "elbow:5-30" (those above the steepest drop of the'
            ' scores), or "all".',
        ),
        "threshold": option(None, "Lowest score, 0 to 1, inclusive."),
        "order": option(
            "score",
            "score: best first; document: as in the document.",
            "[document|score]",
        ),
    },
    left_out={"top_k_per_text": "each record is of one text: --top-k limits it"},
)
class RecordSelection(SelectionOptions):
    """The selection of each record."""


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """The names of the columns of rows."""

    id_column: str = option(
        "id", "Column of a row's id; without the column, the id is FILE:ROW."
    )
    query_column: str = option("query", "Column of the question.")
    text_column: str = option("text", "Column of the document's text.")

    @property
    def columns(self) -> "Columns":
        """The names together."""
        from spscanner_rag.apps.batch.tables import Columns

        return Columns(self.id_column, self.query_column, self.text_column)


@dataclass(frozen=True, kw_only=True)
class RayOptions:
    """Whether Ray scans, and with how many workers."""

    ray: str | None = option(
        None,
        "Scan with workers of Ray: auto is the cluster of this machine, started if"
        " there is none; default: in this process, without Ray.",
        "auto|ADDRESS",
    )
    workers: int | None = option(
        None,
        "With --ray, scanners at the same time, each with --threads CPUs (default: 1)"
        " or, with --device cuda, one GPU; default: as many as there is room for.",
        "N",
        lowest=1,
    )

    def check(self, device: str) -> None:
        """Refuse options that do not fit each other.

        Raises
        ------
        ValueError
        """
        if self.ray is None and self.workers is not None:
            raise ValueError(
                f"--workers: got {self.workers} without --ray; expected both, or"
                " neither: one process scans without Ray"
            )
        if self.ray is not None and ":" in device:
            raise ValueError(
                f"--device: got {device!r} with --ray, which chooses the GPU of each"
                " worker; expected cuda or cpu"
            )


@grouped
def batch(
    inputs: list[str] = _INPUTS,
    out: str = option(
        ..., "Folder for the parts, or its address; a run found there resumes.", "PATH"
    ),
    *,
    query: list[str] | None = option(
        None, "Questions for each document, quoted.", "QUESTION..."
    ),
    queries: str | None = option(
        None, "Questions (id, query) for each document: JSONL or Parquet.", "FILE"
    ),
    choice: RecordSelection,
    texts: bool = option(True, "Write the text of sentences as well as their spans."),
    naming: ColumnOptions,
    rows_per_part: int = option(
        500, "Rows read together and written to one part; fewer if long.", lowest=1
    ),
    model: str | None = MODEL,
    computes: ScannerOptions,
    segment_tokens: int | None = SEGMENT_TOKENS,
    cluster: RayOptions,
    progress: bool | None = PROGRESS,
) -> None:
    """Scan pairs of a question and a document, or the same questions on each document.

    Write results to files.

    Each pair is read on its own, as `spscanner scan` reads one FILE.
    """
    from spscanner_rag.apps.batch.encoding import default_form
    from spscanner_rag.apps.batch.parts import check_parts_folder
    from spscanner_rag.apps.batch.plan import plan_of
    from spscanner_rag.apps.batch.run import run_batch
    from spscanner_rag.apps.batch.worker import BatchTask
    from spscanner_rag.apps.pages.terminal import new_bar, progress_bars

    selection = choice.selection()
    cluster.check(computes.device)
    questions = _queries(query or [], queries, naming.columns)
    plan = plan_of(inputs, naming.columns, rows_per_part, bool(questions))
    other_inputs = computes.model_files(model)
    if queries is not None:
        other_inputs.append(queries)
    check_parts_folder(out, plan, other_inputs)
    for note in plan.notes:
        tell(note)
    task = BatchTask(naming.columns, questions, selection, default_form(), texts)
    scanner_options = {
        "model": _absolute(model),
        "device": computes.device,
        "dtype": computes.dtype,
        "threads": computes.threads,
        "segment_tokens": segment_tokens,
        "tokenizer": _absolute(computes.tokenizer),
        "read": read_of(computes.read),
    }
    identity, finish_all = _workers(plan, task, scanner_options, cluster)
    with progress_bars(progress) as bars:
        show = new_bar(bars, "parts")
        result = run_batch(
            plan,
            task,
            identity,
            out,
            finish_all,
            show=lambda run: show(run.resumed + run.done, run.parts),
        )
    _write_summary(result, out)
    if result.failures:
        raise typer.Exit(INCOMPLETE)


def _workers(
    plan: "Plan",
    task: "BatchTask",
    scanner_options: dict[str, Any],
    cluster: RayOptions,
) -> "tuple[dict[str, str], FinishAll]":
    """Return what identifies the checkpoint, and what scans chunks."""
    from spscanner_rag.apps.batch.worker import Worker
    from spscanner_rag.baselines.identity import identity_of
    from spscanner_rag.scanner import Scanner

    dtype = {"dtype": scanner_options["dtype"]}
    if cluster.ray is None:
        scanner = Scanner.from_pretrained(**scanner_options)
        worker = Worker(scanner, task, plan.check_unchanged)
        return identity_of(scanner) | dtype, worker.finish_all
    from spscanner_rag.apps.batch.ray_pool import RayPool

    # This process says only which checkpoint it is.
    on_cpu = {"device": "cpu", "dtype": "float32"}
    scanner = Scanner.from_pretrained(**scanner_options | on_cpu)
    threads = scanner_options["threads"] or 1
    pool = RayPool(
        task,
        plan,
        scanner_options | {"threads": threads},
        address=cluster.ray,
        workers=cluster.workers,
        cpus=threads,
        gpus=int(scanner_options["device"] == "cuda"),
    )
    return identity_of(scanner) | dtype, pool.finish_all


def _absolute(name: str | None) -> str | None:
    """Return the absolute path of a local file or folder, else the name of a Hub id.

    A worker has another current folder.
    """
    if name is None or not Path(name).exists():
        return name
    return str(Path(name).resolve())


def _queries(
    questions: list[str], file: str | None, columns: "Columns"
) -> "list[Query]":
    """Return the questions of the command line and of a file, checked."""
    from spscanner_rag.apps.batch.plan import plan_of
    from spscanner_rag.apps.batch.rows import Query, RowReader
    from spscanner_rag.apps.batch.tables import Columns

    queries: list[Query] = []
    for number, text in enumerate(questions, 1):
        check_query(text, "--query")
        queries.append(Query(str(number), text))
    if file is None:
        return queries
    as_texts = Columns(columns.id, columns.query, columns.query)
    reader = RowReader(as_texts)
    for chunk in plan_of([file], as_texts, _ROWS_OF_QUERIES, has_queries=True).chunks:
        for row in reader.rows(chunk):
            if row.error is not None:
                raise ValueError(f"--queries {file}: {row.id}: {row.error}")
            check_query(row.query, f"--queries {file}: {row.id}")
            queries.append(Query(row.id, row.query))
    return queries


def _write_summary(result: "Progress", out: str) -> None:
    errors = ""
    if result.errors:
        errors = f", {result.errors:,} of them with an error"
    resumed = ""
    if result.resumed:
        resumed = f", {result.resumed:,} parts of an earlier run"
    lines = [
        f"{result.rows:,} rows{errors}, {result.tokens:,} tokens in {result.done:,}"
        f" parts{resumed}: {one_line(out)}"
    ]
    if result.failures:
        lines.append(
            f"{len(result.failures):,} of {result.parts:,} parts were not written; run"
            " the same command to try again"
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if result.repeated:
        first_id = one_line(result.repeated[0])[:_LONGEST_ID_SHOWN]
        tell(
            f"{len(result.repeated):,} rows have the same id as an earlier one (first:"
            f" {first_id!r})"
        )
    for failure in result.failures[:_FAILURES_SHOWN]:
        tell(failure)
