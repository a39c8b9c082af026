"""``spscanner eval``: how well retrievers find the evidence of questions on documents."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spscanner_rag import __version__
from spscanner_rag.documents import one_line, write_file

if TYPE_CHECKING:
    from spscanner_rag.baselines.named import Options
    from spscanner_rag.evaluation.records import RecordFile
    from spscanner_rag.evaluation.run import Setting
    from spscanner_rag.evaluation.sampling import Asked
    from spscanner_rag.evaluation.table import Row
    from spscanner_rag.scorers import Scorer

RESULTS = """The folder gets records.jsonl (one question a line), results.json and results.csv (one number a row),
differences.json (paired tests of the first retriever against the others), results.md and results.html. A run that
was killed is taken up by the same command.
"""


def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help="Question files, .jsonl or .jsonl.gz, one document a line."),
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
        int | None, typer.Option(min=1, help="At most so many questions of each source.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which questions, and the intervals.")] = 0,
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Of this source only the tenth of documents that training leaves out; may be repeated.",
            show_default=False,
        ),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Count lines that cannot be read and go on.")
    ] = False,
    context_ablation: Annotated[
        bool,
        typer.Option(
            "--context-ablation",
            help="Also the bundled scanner with single sentences, and with 1,024 tokens.",
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="Of the scanner: auto, float32 or bfloat16.")] = "auto",
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let models from the Hub run their own code.")
    ] = False,
) -> None:
    """Measure how well retrievers find the evidence of questions on long documents."""
    from spscanner_rag.baselines.named import Options, check_names
    from spscanner_rag.baselines.units import segmenter_of
    from spscanner_rag.devices import processor_name
    from spscanner_rag.evaluation.ablation import ALONE, WINDOWS, ablated
    from spscanner_rag.evaluation.records import RecordFile, check_arguments
    from spscanner_rag.evaluation.run import Setting, settings_of

    names, units = _words(retrievers), _words(unit)
    check_names(names)
    for kind in units:
        segmenter_of(kind)  # type: ignore[arg-type]  # which says what it takes
    settings = settings_of(names, units)
    questions, bad = _questions(data, max_questions, seed, held_out or [], skip_bad)
    arguments = {
        "max_questions": max_questions,
        "seed": seed,
        "held_out": sorted(held_out or []),
        "device": device,
        "dtype": dtype,
        "trust_remote_code": trust_remote_code,
        "questions": _digest(questions),
        "version": __version__,
    }
    check_arguments(out, arguments)
    options = Options(device=device, dtype=dtype, trust_remote_code=trust_remote_code)
    scorers = _scorers(settings, options)
    if context_ablation:
        scorers |= ablated(device, dtype)
        settings += [Setting(name, "sentence") for name in (ALONE, WINDOWS)]
    file = RecordFile(out, arguments)  # the first thing that is written, when all is loaded
    _run(settings, scorers, questions, file)
    facts = {
        "Command": _command(),
        "Machine": f"{processor_name()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "Date": datetime.now(UTC).date().isoformat(),
        "Lines left out": str(bad),
    }
    _write(out, file, settings, seed, facts)


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _questions(
    paths: Sequence[Path], per_source: int | None, seed: int, held_out: Sequence[str], skip_bad: bool
) -> tuple[dict[str, list["Asked"]], int]:
    from spscanner_rag.evaluation.data import DataError, read_documents
    from spscanner_rag.evaluation.sampling import only_held_out, sample_questions

    bad: list[DataError] = []
    documents = read_documents(paths, bad.append if skip_bad else None)
    questions = sample_questions(only_held_out(documents, held_out), per_source, seed)
    for error in bad[:5]:
        sys.stderr.write(f"spscanner: left out: {one_line(str(error))}\n")
    if not questions:
        raise ValueError("the data have no answerable question with evidence; expected at least one")
    return questions, len(bad)


def _scorers(settings: Sequence["Setting"], options: "Options") -> dict[str, "Scorer"]:
    """All retrievers by name, loaded: what is missing is missed before any work."""
    from spscanner_rag.baselines.named import scorer_of

    return {
        name: scorer_of(name, options) for name in dict.fromkeys(setting.retriever for setting in settings)
    }


def _run(
    settings: Sequence["Setting"],
    scorers: dict[str, "Scorer"],
    questions: dict[str, list["Asked"]],
    file: "RecordFile",
) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from spscanner_rag.evaluation.run import run_setting
    from spscanner_rag.scanner import bundled_token_counter

    count_tokens = bundled_token_counter()  # the same for all, and offline
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        for setting in settings:
            bar = bars.add_task(one_line(setting.label), total=None)

            def show(done: int, total: int, bar: Any = bar) -> None:  # noqa: ANN401 - rich's own number
                bars.update(bar, completed=done, total=total)

            run_setting(setting, scorers[setting.retriever], questions, count_tokens, file, show)


def _write(
    out: Path, file: "RecordFile", settings: Sequence["Setting"], seed: int, facts: dict[str, str]
) -> None:
    from spscanner_rag.evaluation.markdown import to_markdown
    from spscanner_rag.evaluation.page import render_page
    from spscanner_rag.evaluation.table import differences_of, rows_of, to_csv

    records = list(file.records.values())
    rows = rows_of(records, settings, seed)
    differences = differences_of(records, settings, seed)
    write_file(out / "results.json", json.dumps(rows, indent=1) + "\n")
    write_file(out / "results.csv", to_csv(rows))
    write_file(out / "differences.json", json.dumps(differences, indent=1) + "\n")
    write_file(out / "results.md", to_markdown(rows, differences, settings))
    write_file(out / "results.html", render_page(rows, differences, settings, facts))
    _print(rows, settings, out)


def _print(rows: Sequence["Row"], settings: Sequence["Setting"], out: Path) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from spscanner_rag.evaluation.metrics import CUTOFFS
    from spscanner_rag.evaluation.table import index_of, sources_of

    columns = [*(("recall", k) for k in CUTOFFS), ("ndcg", 10), ("mrr", None)]
    table = Table(title="recall at k (@k), nDCG@10 and MRR, percent", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("source")
    table.add_column("retriever")
    for head in (*(f"@{k}" for k in CUTOFFS), "nDCG", "MRR"):
        table.add_column(head, justify="right", no_wrap=True)
    index = index_of(rows)
    for source in [*sources_of(rows), "macro", "micro"]:
        for setting in settings:
            found = [index.get((*setting, *column, source)) for column in columns]
            if any(found):
                cells = ["-" if row is None else f"{100 * row['value']:.1f}" for row in found]
                table.add_row(Text(one_line(source)), Text(one_line(setting.label)), *cells)
        table.add_section()
    console = Console()
    console.print(table)
    console.print(Text(f"written to {one_line(str(out))}"))


def _digest(questions: dict[str, list["Asked"]]) -> str:
    import hashlib

    digest = hashlib.sha256()
    for source, asked in questions.items():
        for document, question in asked:
            line = json.dumps([source, document.doc_id, question.qid, question.text, question.evidence])
            digest.update(line.encode())
    return digest.hexdigest()


def _command() -> str:
    import shlex

    return one_line(shlex.join(["spscanner", *sys.argv[1:]]))
