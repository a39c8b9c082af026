"""``spscanner batch``: scan many questions and documents from files.

An interrupted run keeps finished parts.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spscanner_rag.apps.cli.options import (
    MODEL,
    PROGRESS,
    SEGMENT_TOKENS,
    ScannerOptions,
    argument,
    checked_selection,
    grouped,
    option,
    tell,
)
from spscanner_rag.scorers import check_query
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.apps.batch import Columns, Progress, Query

RESULTS = """The folder gets part-000000.parquet and so on (.jsonl without pyarrow), with a row for each pair:

\b
id, query_id, document_score, sentence_count, tokens, error,
sentences: [{start, end, score, logit, text, section}], the best first

A row that cannot be scanned has an error and no score. The same command resumes an interrupted run.
Exit code: 0 if all parts were written, 3 if some were not.
"""
INCOMPLETE = 3


@grouped
def batch(
    inputs: list[str] = argument(
        "Parquet or JSONL files; with --query or --queries also text, Markdown, HTML,"
        " PDF or DOCX; or folders.",
        "INPUT...",
    ),
    out: Path = option(..., "Folder for the parts; a run found there resumes."),
    *,
    query: list[str] | None = option(
        None, "Questions for each document, quoted.", "QUESTION..."
    ),
    queries: str | None = option(
        None, "Questions (id, query) for each document: JSONL or Parquet.", "FILE"
    ),
    top_k: str = option(
        "10",
        'Sentences to keep from each document: a number, a share below 1, or "all".',
    ),
    threshold: float | None = option(None, "Lowest score, 0 to 1, inclusive."),
    texts: bool = option(True, "Write the text of sentences as well as their spans."),
    id_column: str = option(
        "id", "Column of a row's id; without the column, the id is FILE:ROW."
    ),
    query_column: str = option("query", "Column of the question."),
    text_column: str = option("text", "Column of the document's text."),
    rows_per_part: int = option(
        500, "Rows read together and written to one part; fewer if long.", least=1
    ),
    model: str | None = MODEL,
    computes: ScannerOptions,
    segment_tokens: int | None = SEGMENT_TOKENS,
    progress: bool = PROGRESS,
) -> None:
    """Scan pairs of a question and a document, or the same questions on each document.

    Write results to files.

    Each pair is read on its own, as `spscanner scan` reads one FILE.
    """
    from spscanner_rag.apps.batch import Columns, RowReader, plan_of, run_batch
    from spscanner_rag.apps.pages.terminal import new_bar, progress_bars
    from spscanner_rag.baselines.identity import identity_of

    columns = Columns(id_column, query_column, text_column)
    selection = checked_selection(top_k, threshold=threshold)
    asked = _queries(query or [], queries, columns)
    plan = plan_of(inputs, columns, rows_per_part, bool(asked))
    for note in plan.notes:
        tell(note)
    scanner = computes.scanner(model, segment_tokens)
    identity = identity_of(scanner) | {"dtype": computes.dtype}
    with progress_bars(progress) as bars:
        show = new_bar(bars, "parts")
        done = run_batch(
            plan,
            RowReader(columns, asked),
            selection,
            identity,
            out,
            scanner,
            texts=texts,
            show=lambda run: show(run.found + run.done, run.parts),
        )
    _write_summary(done, out)
    if done.failures:
        raise typer.Exit(INCOMPLETE)


def _queries(given: list[str], file: str | None, columns: "Columns") -> "list[Query]":
    from spscanner_rag.apps.batch import Columns, Query, RowReader, plan_of

    for text in given:
        check_query(text, "--query")
    found = [Query(str(number), text) for number, text in enumerate(given, 1)]
    if file is None:
        return found
    as_texts = Columns(columns.id, columns.query, columns.query)
    reader = RowReader(as_texts)
    plan = plan_of([file], as_texts, 10_000, has_queries=True)
    for row in (row for chunk in plan.chunks for row in reader.rows(chunk)):
        if row.error is not None:
            raise ValueError(f"--queries {file}: {row.id}: {row.error}")
        check_query(row.query, f"--queries {file}: {row.id}")
        found.append(Query(row.id, row.query))
    return found


def _write_summary(done: "Progress", out: Path) -> None:
    found = f", {done.found:,} parts of an earlier run" if done.found else ""
    errors = f", {done.errors:,} of them with an error" if done.errors else ""
    lines = [
        f"{done.rows:,} rows{errors}, {done.tokens:,} tokens in {done.done:,}"
        f" parts{found}: {one_line(str(out))}"
    ]
    if done.failures:
        lines.append(
            f"{len(done.failures):,} of {done.parts:,} parts were not written; run the"
            " same command to try again"
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if done.repeated:
        first = one_line(done.repeated[0])[:80]
        tell(
            f"{len(done.repeated):,} rows have the same id as an earlier one (first:"
            f" {first!r})"
        )
    for failure in done.failures[:10]:
        tell(failure)
