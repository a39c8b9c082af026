"""``spscanner scan``: the sentences of documents that answer a question."""

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from spscanner_rag.files.documents import TextFile, read_text_files
from spscanner_rag.files.output import check_output, write_output
from spscanner_rag.scorers import check_query
from spscanner_rag.views.scanned_document import ScannedDocument

if TYPE_CHECKING:
    from spscanner_rag.results import ScanResult
    from spscanner_rag.scanner import Scanner


# \b keeps the program's help from re-wrapping a paragraph.
JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "model": str, "documents": [
  {"path": str, "characters": int, "sentences": int, "passages": [
    {"start": int, "end": int, "line": int, "column": int,
     "score": float, "logit": float, "neighbour": bool, "text": str}]}]}

start and end count the characters of the decoded text from 0, end excluded; score is the sigmoid of logit;
neighbour is true for what --context added.
"""


class OutputFormat(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


class OutputOrder(StrEnum):
    """Order of the selected sentences."""

    SCORE = "score"
    DOCUMENT = "document"


def _parse_top_k(value: str) -> float | None:
    if value == "all":
        return None
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise ValueError(
            f'--top-k: got {value!r}; expected an integer of at least 1, a share below 1, or "all"'
        ) from None


def _parse_number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise typer.BadParameter(f"got {value!r}; expected a number") from None


def _parse_whole_number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise typer.BadParameter(f"got {value!r}; expected a whole number") from None


def scan(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="UTF-8 text files; - is standard input.")
    ],
    query: Annotated[str, typer.Option("--query", "-q", help="The question.")],
    top_k: Annotated[
        str,
        typer.Option(help='Sentences to show: a number, a share below 1 (at least 10), or "all".'),
    ] = "10",
    threshold: Annotated[
        float | None,
        typer.Option(
            parser=_parse_number,
            metavar="NUMBER",
            help="Lowest score, 0 to 1, inclusive.",
            show_default=False,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            parser=_parse_whole_number,
            metavar="NUMBER",
            help="Token budget of each document; the best sentences come first.",
            show_default=False,
        ),
    ] = None,
    count_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="ENCODING",
            help="What --max-tokens counts: a tiktoken encoding such as o200k_base; default the "
            "checkpoint's own tokens.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            parser=_parse_whole_number,
            metavar="NUMBER",
            help="Neighbours on each side of a sentence; default 1 for text, else 0.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        OutputOrder, typer.Option(help="Best first, or as in the document.")
    ] = OutputOrder.SCORE,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Text, JSON, or one HTML page.")
    ] = OutputFormat.TEXT,
    out: Annotated[
        Path | None, typer.Option(help="File to write instead of standard output.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Checkpoint: a folder or a Hub id; default the bundled one.", show_default=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or int8.")] = "auto",
    segment_tokens: Annotated[
        int | None,
        typer.Option(
            parser=_parse_whole_number,
            metavar="NUMBER",
            help="Tokens the model reads at a time; default the scanner's.",
            show_default=False,
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Progress on standard error; default if a terminal."),
    ] = None,
) -> None:
    """Show the sentences of documents that answer a question.

    Each FILE is scanned as a document of its own. Positions are line:column from 1, a column counting
    characters. A byte order mark is not part of the text.
    """
    selection = {
        "top_k": _parse_top_k(top_k),
        "threshold": threshold,
        "max_tokens": max_tokens,
        "count_tokens": count_tokens,
        "context": context if context is not None else int(output_format is OutputFormat.TEXT),
        "order": order.value,
    }
    _check(query, selection)
    documents = read_text_files(files)
    if out is not None:
        check_output(out, files)
    scanner = _load_scanner(model, device, dtype, segment_tokens)
    show_progress = sys.stderr.isatty() if progress is None else progress
    scanned = _scan_documents(scanner, query, documents, selection, show_progress)
    content = _render(output_format, scanner.checkpoint.source, query, scanned, selection, out)
    write_output(content, out, is_page=output_format is OutputFormat.HTML)


def _check(query: str, selection: dict[str, Any]) -> None:
    """Raise ``ValueError`` for a bad option before a file is read or a model is loaded."""
    from spscanner_rag.results import ScanResult

    check_query(query, "--query")
    nothing = ScanResult(query, "", [], [], [], count_tokens=len)  # type: ignore[arg-type]
    nothing.select(**selection)


def _load_scanner(model: str | None, device: str, dtype: str, segment_tokens: int | None) -> "Scanner":
    from spscanner_rag import Scanner

    return Scanner.from_pretrained(model, device=device, dtype=dtype, segment_tokens=segment_tokens)


def _scan_documents(
    scanner: "Scanner",
    query: str,
    documents: Sequence[TextFile],
    selection: dict[str, Any],
    show_progress: bool,
) -> list[ScannedDocument]:
    from spscanner_rag.views.terminal import scan_progress

    scanned = []
    with scan_progress(show_progress, sys.stderr) as start:
        for document in documents:
            result = scanner.scan(query, document.text, progress=start(document.path))
            scanned.append(_select(document, result, selection))
    return scanned


def _select(document: TextFile, result: "ScanResult", selection: dict[str, Any]) -> ScannedDocument:
    passages = result.select(**selection)
    without_neighbours = result.select(**{**selection, "context": 0})
    best = {passage.start for passage in without_neighbours}
    picks = tuple(passage for passage in passages if passage.start in best)
    return ScannedDocument(document, result, passages, picks)


def _render(
    output_format: OutputFormat,
    model: str,
    query: str,
    scanned: Sequence[ScannedDocument],
    selection: dict[str, Any],
    out: Path | None,
) -> str:
    if output_format is OutputFormat.JSON:
        return _render_json(model, query, scanned)
    if output_format is OutputFormat.HTML:
        from spscanner_rag.views.report import render_report

        return render_report(query, model, scanned)
    from io import StringIO

    from spscanner_rag.views.terminal import render_documents

    return render_documents(scanned, cast(int, selection["context"]), StringIO() if out else sys.stdout)


def _render_json(model: str, query: str, scanned: Sequence[ScannedDocument]) -> str:
    content = {"query": query, "model": model, "documents": [_describe(document) for document in scanned]}
    # ASCII only: no character of a document can act on a terminal, and any output can hold it.
    return json.dumps(content, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _describe(scanned: ScannedDocument) -> dict[str, object]:
    picks = {passage.start for passage in scanned.picks}
    passages = []
    for passage in scanned.passages:
        line, column = scanned.document.position(passage.start)
        passages.append(
            {
                "start": passage.start,
                "end": passage.end,
                "line": line,
                "column": column,
                "score": passage.score,
                "logit": float(scanned.result.logits[scanned.number(passage)]),
                "neighbour": passage.start not in picks,
                "text": passage.text,
            }
        )
    return {
        "path": scanned.document.path,
        "characters": len(scanned.document.text),
        "sentences": len(scanned.result.logits),
        "passages": passages,
    }
