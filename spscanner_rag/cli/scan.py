"""``spscanner scan``: the sentences of documents that answer a question."""

import sys
from enum import StrEnum
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spscanner_rag.cli import arguments
from spscanner_rag.cli.arguments import OutputFormat, optional, optional_number
from spscanner_rag.files.documents import TextFile, read_text_files
from spscanner_rag.files.output import check_output, json_text, write_output
from spscanner_rag.scorers import check_query, words_together
from spscanner_rag.views.scanned_document import ScannedDocument

if TYPE_CHECKING:
    from spscanner_rag.results import ScanResult


# \b keeps the program's help from re-wrapping a paragraph.
JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "model": str, "documents": [
  {"path": str, "characters": int, "sentences": int, "passages": [
    {"start": int, "end": int, "line": int, "column": int,
     "score": float, "logit": float, "neighbour": bool, "text": str}]}]}

start and end count the characters of the decoded text from 0, end excluded; score is the sigmoid of logit;
neighbour is true for a sentence that --context added.
"""


class OutputOrder(StrEnum):
    """Order of the selected sentences."""

    SCORE = "score"
    DOCUMENT = "document"


def _parse_top_k(value: str) -> float | None:
    if value == "all":
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    raise ValueError(f'--top-k: got {value!r}; expected an integer of at least 1, a share below 1, or "all"')


def scan(
    files: arguments.Files,
    query: arguments.Query,
    top_k: Annotated[
        str, typer.Option(help='Sentences to show: a number, a share below 1 (at least 10), or "all".')
    ] = "10",
    threshold: Annotated[float | None, optional_number("Lowest score, 0 to 1, inclusive.", float)] = None,
    max_tokens: Annotated[
        int | None, optional_number("Token budget of each document; the best sentences come first.")
    ] = None,
    count_tokens: Annotated[
        str | None,
        optional(
            "What --max-tokens counts: a tiktoken encoding such as o200k_base; default the checkpoint's own "
            "tokens.",
            "ENCODING",
        ),
    ] = None,
    context: Annotated[
        int | None, optional_number("Neighbours on each side of a sentence; default 1 for text, else 0.")
    ] = None,
    order: Annotated[
        OutputOrder, typer.Option(help="Best first, or as in the document.")
    ] = OutputOrder.SCORE,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Text, JSON, or one HTML page.")
    ] = OutputFormat.TEXT,
    out: arguments.Out = None,
    model: Annotated[
        str | None, optional("Checkpoint: a folder or a Hub id; default the bundled one.")
    ] = None,
    device: arguments.Device = "auto",
    dtype: arguments.Dtype = "auto",
    segment_tokens: Annotated[
        int | None, optional_number("Tokens the model reads at a time; default the scanner's.")
    ] = None,
    progress: arguments.ShowProgress = None,
) -> None:
    """Show the sentences of documents that answer a question.

    Each FILE is read on its own, and scores compare between files. Positions are line:column from 1, a column
    counting characters. A byte order mark is not part of the text.
    """
    from spscanner_rag.results import ScanResult

    check_query(query, "--query")
    neighbours = context if context is not None else int(output_format is OutputFormat.TEXT)
    selection: dict[str, Any] = {
        "top_k": _parse_top_k(top_k),
        "threshold": threshold,
        "max_tokens": max_tokens,
        "count_tokens": count_tokens,
        "context": neighbours,
        "order": order.value,
    }
    empty = ScanResult(query, "", [], [], [], count_tokens=len)  # type: ignore[arg-type]
    empty.select(**selection)  # raises an error for a bad option before a file is read or a model is loaded
    documents = read_text_files(files)
    check_output(out, files)

    from spscanner_rag import Scanner
    from spscanner_rag.evidence.coverage import Spans
    from spscanner_rag.views.terminal import render_documents, scan_progress

    scanner = Scanner.from_pretrained(model, device=device, dtype=dtype, segment_tokens=segment_tokens)
    cuts = [scanner.segment(document.text) for document in documents]
    collection = words_together(scanner, cuts) if len(documents) > 1 else None
    with scan_progress(sys.stderr.isatty() if progress is None else progress, sys.stderr) as start:
        scanned = []
        for document, units in zip(documents, cuts, strict=True):
            request, shown = (query, document.text, units), start(document.path)
            (logits,) = scanner.score_units_many([request], collection=collection, progress=shown)
            result = ScanResult(query, document.text, *Spans.of(units), logits, scanner.count_tokens)
            scanned.append(_select(document, result, selection))
    if output_format is OutputFormat.JSON:
        described = [_describe(document) for document in scanned]
        content = json_text({"query": query, "model": scanner.checkpoint.source, "documents": described})
    elif output_format is OutputFormat.HTML:
        from spscanner_rag.views.report import render_report

        content = render_report(query, scanner.checkpoint.source, scanned)
    else:
        content = render_documents(scanned, neighbours, StringIO() if out else sys.stdout)
    write_output(content, out, is_page=output_format is OutputFormat.HTML)


def _select(document: TextFile, result: "ScanResult", selection: dict[str, Any]) -> ScannedDocument:
    passages = result.select(**selection)
    best = {passage.start for passage in result.select(**{**selection, "context": 0})}
    picks = tuple(passage for passage in passages if passage.start in best)
    return ScannedDocument(document, result, passages, picks)


def _describe(scanned: ScannedDocument) -> dict[str, object]:
    picks = {passage.start for passage in scanned.picks}
    return {
        "path": scanned.document.path,
        "characters": len(scanned.document.text),
        "sentences": len(scanned.result.logits),
        "passages": [
            {
                **scanned.document.place(passage.start, passage.end),
                "score": passage.score,
                "logit": float(scanned.result.logits[scanned.number(passage)]),
                "neighbour": passage.start not in picks,
                "text": passage.text,
            }
            for passage in scanned.passages
        ],
    }
