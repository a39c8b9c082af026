"""``spscanner batch``: many questions and documents from files, into parts that an interrupted run keeps."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spscanner_rag.apps.cli.options import (
    MODEL,
    PROGRESS,
    SEGMENT_TOKENS,
    ScannerOptions,
    argument,
    grouped,
    option,
    shows_progress,
    tell,
)
from spscanner_rag.apps.cli.scan import checked_selection, parse_top_k
from spscanner_rag.scorers import check_query
from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.apps.batch.batch_run import Progress
    from spscanner_rag.apps.batch.inputs import Columns, Query
    from spscanner_rag.apps.batch.workers import Pool

RESULTS = """The folder gets part-000000.parquet and so on (.jsonl without pyarrow), a row for each pair:

\b
id, query_id, document_score, sentence_count, tokens, error,
sentences: [{start, end, score, logit, text, section}], the best first

A row that cannot be scanned has its error, and no score. The same command goes on with a run that was interrupted.
Exit code: 0 if all parts were made, 3 if some were not.
"""
INCOMPLETE = 3


@grouped
def batch(
    inputs: list[str] = argument(
        "Parquet or JSONL files, or folders of them; with a question also documents (text, Markdown, HTML, "
        "PDF, DOCX) or folders of them.",
        "INPUT...",
    ),
    out: Path = option(..., "Folder for the parts; a run found there resumes."),
    *,
    query: list[str] | None = option(
        None, "Questions to ask of every document, each in quotation marks.", "QUESTION..."
    ),
    queries: str | None = option(
        None, "Questions to ask of every document: JSONL or Parquet with id and query.", "FILE"
    ),
    top_k: str = option("10", 'Sentences to keep of each document: a number, a share below 1, or "all".'),
    threshold: float | None = option(None, "Lowest score, 0 to 1, inclusive.", number=float),
    texts: bool = option(True, "Write the text of sentences beside their spans."),
    id_column: str = option("id", "Column of a row's id; without it, FILE:ROW is the id."),
    query_column: str = option("query", "Column of the question."),
    text_column: str = option("text", "Column of the document's text."),
    rows_per_part: int = option(
        500, "Rows that are read together and written to one part; fewer if long.", least=1
    ),
    workers: int = option(1, "Scanners that work at the same time, through Ray; 1 needs no Ray.", least=1),
    ray_address: str | None = option(
        None, "A running Ray cluster, such as auto; default one on this machine.", "ADDRESS"
    ),
    model: str | None = MODEL,
    computes: ScannerOptions,
    segment_tokens: int | None = SEGMENT_TOKENS,
    progress: bool | None = PROGRESS,
) -> None:
    """Scan pairs of question and document, or questions on documents, from files into files.

    Each pair is read on its own, as by `spscanner scan` with one FILE. With --workers, each worker has a scanner
    of its own: on CPUs with --threads cores (default 1), on GPUs with one GPU.
    """
    from spscanner_rag.apps.batch.batch_run import run_batch
    from spscanner_rag.apps.batch.inputs import Columns, plan_of
    from spscanner_rag.apps.batch.parts import default_form
    from spscanner_rag.apps.batch.workers import Work
    from spscanner_rag.apps.pages.terminal import open_console, progress_bars

    columns = Columns(id_column, query_column, text_column)
    selection = checked_selection(top_k=parse_top_k(top_k), threshold=threshold)
    asked = _queries(query or [], queries, columns)
    plan = plan_of(inputs, columns, rows_per_part, bool(asked))
    pool = _pool(workers, ray_address, computes)
    arguments: dict[str, Any] = {
        "model": None if model is None else str(_found(model)),
        "device": computes.device,
        "dtype": computes.dtype,
        "threads": pool.cpus if pool and not pool.gpus else computes.threads,
        "segment_tokens": segment_tokens,
    }
    from spscanner_rag import Scanner
    from spscanner_rag.lab.evaluation.retriever_identity import identity_of

    # with a pool, this process only finds out which checkpoint it is
    scanner = Scanner.from_pretrained(**arguments | ({"device": "cpu", "dtype": "float32"} if pool else {}))
    work = Work(arguments, columns, asked, selection, default_form(), texts)
    identity = identity_of("scanner", scanner) | {"dtype": computes.dtype}
    console = open_console(sys.stderr)
    with progress_bars(console, disable=not shows_progress(progress)) as bars:
        bar = bars.add_task("parts", total=None)

        def show(state: "Progress") -> None:
            bars.update(bar, completed=state.found + state.done, total=state.parts)

        done = run_batch(plan, work, identity, out, pool, None if pool else scanner, show)
    _write_summary(done, out)
    if done.failures:
        raise typer.Exit(INCOMPLETE)


def _queries(given: list[str], file: str | None, columns: "Columns") -> "list[Query]":
    from spscanner_rag.apps.batch.inputs import Chunk, Columns, Query, RowReader, plan_of

    for text in given:
        check_query(text, "--query")
    found = [Query(str(number), text) for number, text in enumerate(given, 1)]
    if file is None:
        return found
    as_texts = Columns(columns.id, columns.query, columns.query)
    chunks: tuple[Chunk, ...] = plan_of([file], as_texts, 10_000, has_queries=True).chunks
    reader = RowReader(as_texts, [])
    for row in (row for chunk in chunks for row in reader.rows(chunk)):
        if row.error is not None:
            raise ValueError(f"--queries {file}: {row.id}: {row.error}")
        check_query(row.query, f"--queries {file}: {row.id}")
        found.append(Query(row.id, row.query))
    return found


def _pool(workers: int, address: str | None, computes: ScannerOptions) -> "Pool | None":
    if workers == 1 and address is None:
        return None
    if find_spec("ray") is None:
        if address is not None:
            raise ImportError('--ray-address needs Ray: pip install "spscanner-rag[ray]"')
        tell('--workers needs Ray, so one process scans: pip install "spscanner-rag[ray]"')
        return None
    from spscanner_rag.apps.batch.workers import Pool

    if computes.device.startswith("cuda:"):
        raise ValueError(
            f"--device: got {computes.device} for several workers; expected cuda: Ray gives each its own GPU"
        )
    import torch

    on_gpu = computes.device == "cuda" or (computes.device == "auto" and torch.cuda.is_available())
    return Pool(workers, computes.threads or 1, int(on_gpu), address)


def _found(model: str) -> str | Path:
    """A local folder by its whole path, since workers have another working folder."""
    folder = Path(model).expanduser()
    return folder.resolve() if folder.is_dir() else model


def _write_summary(done: "Progress", out: Path) -> None:
    found = f", {done.found:,} parts of an earlier run" if done.found else ""
    errors = f", {done.errors:,} of them with an error" if done.errors else ""
    lines = [
        f"{done.rows:,} rows{errors}, {done.tokens:,} tokens in {done.done:,} parts{found}: "
        f"{one_line(str(out))}"
    ]
    if done.failures:
        lines.append(
            f"{len(done.failures):,} of {done.parts:,} parts were not made; the same command tries again"
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    for failure in done.failures[:10]:
        tell(failure)
