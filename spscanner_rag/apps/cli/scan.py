"""``spscanner scan``: show the sentences of documents that answer a question."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from spscanner_rag.apps.cache import user_cache
from spscanner_rag.apps.cli.declaring import grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.model_options import ScannerOptions
from spscanner_rag.apps.cli.output_options import OutputFormat, OutputOptions
from spscanner_rag.apps.cli.prepared_files import PreparedFiles
from spscanner_rag.apps.cli.selection import (
    OF_ONE_TEXT,
    SelectionOptions,
    selection_options,
)
from spscanner_rag.apps.cli.shared_options import (
    CACHE,
    FILES,
    MODEL,
    OCR,
    PROGRESS,
    SEGMENT_TOKENS,
)
from spscanner_rag.apps.pages import scanned_document
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import STANDARD_INPUT
from spscanner_rag.files.formats import format_named_by
from spscanner_rag.results import Selection
from spscanner_rag.results.offsets import Offsets, check_offsets
from spscanner_rag.scorers import check_query
from spscanner_rag.system.strict_json import json_text

if TYPE_CHECKING:
    from spscanner_rag import Scanner

# \b keeps the program's help from re-wrapping a paragraph.
JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "model": str, "documents": [
  {"path": str, "characters": int, "sentences": int,
   "answerable": float or null, "passages": [
    {"start": int, "end": int, "line": int, "column": int,
     "page": str, "page_number": int, "boxes": [[page, x0, y0, x1, y1]],
     "place": str, "headings": [str], "rank": int, "score": float, "logit": float,
     "neighbour": bool, "text": str}]}]}

start and end count characters of the text that was read (--text-out writes it), from
0, end excluded. Documents with pages have page and page_number, sheets, slides,
chapters, mails and records have place, documents with headings have headings, and a
PDF has boxes, in points from the lower left of a page.
--format jsonl writes one passage per line, with its path. answerable is the
probability that the document answers the question, if the checkpoint estimates it;
rank counts the sentences of all documents, or with --merge the passages; score is the
sigmoid of logit; neighbour is true, and rank null, for a sentence that --context
added.
"""


@selection_options(
    redeclared={
        "top_k": option(
            "10",
            "Sentences to show, of all files together: a number, a share below 1 (at"
            ' least 10), "elbow" or "elbow:5-30" (those above the steepest drop of the'
            ' scores), or "all".',
            names=("--top-k", "-k"),
        ),
        "threshold": option(
            None, "Lowest score, 0 to 1, inclusive; exit code 1 if none has it."
        ),
        "context": option(
            None,
            "Neighbours on each side of a sentence; default: 1 for text, else 0.",
        ),
        "order": option(
            "score", "Best first, or in document order.", "[score|document]"
        ),
    },
    left_out={"top_k_per_text": OF_ONE_TEXT},
)
class ScanSelection(SelectionOptions):
    """The selection of `scan`, which shows neighbours in text only, by default."""

    def of_form(self, form: OutputFormat) -> Selection:
        """The selection for results in this format."""
        context = vars(self)["context"]
        if context is None:
            context = int(form is OutputFormat.TEXT)
        return self.selection(context=context)


@grouped
def scan(
    files: list[str] = FILES,
    query: str | None = option(
        None,
        "The question; without it, a prompt asks for questions.",
        names=("--query", "-q"),
    ),
    *,
    chosen: ScanSelection,
    offsets: str = option(
        "characters", "What start and end count: characters, utf16 or bytes."
    ),
    output: OutputOptions,
    model: str | None = MODEL,
    computes: ScannerOptions,
    segment_tokens: int | None = SEGMENT_TOKENS,
    ocr: str = OCR,
    cache: bool = CACHE,
    progress: bool | None = PROGRESS,
) -> None:
    """Show the sentences of documents that answer a question.

    The question may also be the last word: spscanner scan report.pdf "Who signed it?".
    Each FILE is read on its own; one ranking covers all files and is shown file by
    file. A position is the page of a PDF, or line:column of the text, both counted from
    1 and columns in characters, with the heading above. A byte order mark is not part
    of the text.
    """
    if query is None and len(files) > 1 and not _is_file(files[-1]):
        query = files[-1]
        files = files[:-1]
    counting = check_offsets(offsets, "--offsets")
    if query is not None:
        check_query(query, "--query")
    elif not sys.stdin.isatty() or output.out or output.form is not OutputFormat.TEXT:
        raise ValueError(
            "--query: got none; expected a question: the prompt needs a terminal, and"
            " shows text only"
        )
    selection = chosen.of_form(output.form)
    read_cache = user_cache() if cache else None
    model_files = computes.model_files(model)
    documents = output.read_documents(files, read_cache, progress, model_files, ocr)
    if output.form is OutputFormat.PDF:
        scanned_document.check_is_pdf(documents)
    characters = None
    if query is not None:
        characters = sum(len(document.text) for document in documents)
    scanner = computes.scanner(model, segment_tokens, read_cache, characters)
    _check_scores(scanner, selection)
    prepared_files = PreparedFiles(scanner, documents, progress)
    scanned: list[ScannedDocument] = []
    for question in _questions() if query is None else (query,):
        scanned = prepared_files.scanned(question, selection)
        if selection.order == "score" and output.form is not OutputFormat.JSON:
            scanned.sort(key=_best_rank)
        source = scanner.checkpoint.source
        content = _rendered(output, question, source, scanned, counting)
        output.write(documents, content)
    has_picks = any(document.picks for document in scanned)
    cuts = selection.threshold is not None or selection.keep is not None
    if query is not None and cuts and not has_picks:
        raise typer.Exit(1)


def _check_scores(scanner: "Scanner", selection: Selection) -> None:
    """Refuse a selection by scores that the checkpoint does not have."""
    if selection.require_answer is not None and not scanner.says_answers:
        raise ValueError(
            "--require-answer: this checkpoint does not estimate whether a document"
            " answers; use --threshold instead"
        )
    if selection.keep is not None and scanner.keep_scale is None:
        raise ValueError(
            "--keep: this checkpoint has no spscanner.keep, which presets cut by; use"
            " --threshold instead"
        )


def _is_file(word: str) -> bool:
    """Whether the last word is a file, and not the question."""
    if word == STANDARD_INPUT or format_named_by(word):
        return True
    return os.path.lexists(word.partition("\0")[0])


def _best_rank(scanned: ScannedDocument) -> int:
    return min(scanned.ranks.values(), default=sys.maxsize)


def _questions() -> Iterator[str]:
    """Yield questions typed at a prompt, until Ctrl-D or Ctrl-C.

    The prompt has a history where readline exists.
    """
    with suppress(ImportError):
        import readline  # noqa: F401
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            if query := input("Question (Ctrl-D ends): ").strip():
                yield query
    sys.stdout.write("\n")


def _rendered(
    output: OutputOptions,
    query: str,
    model: str,
    scanned: list[ScannedDocument],
    offsets: Offsets,
) -> str | bytes:
    match output.form:
        case OutputFormat.JSON:
            return json_text(scanned_document.described(query, model, scanned, offsets))
        case OutputFormat.LINES:
            return scanned_document.to_lines(scanned, offsets)
        case OutputFormat.PDF:
            copy, notes = scanned_document.highlighted(query, scanned[0])
            for note in notes:
                tell(note)
            return copy
        case OutputFormat.CSV:
            return scanned_document.to_csv(scanned, offsets)
        case OutputFormat.MARKDOWN:
            return scanned_document.to_markdown(query, scanned)
        case OutputFormat.HTML:
            from spscanner_rag.apps.pages.report import render_report

            return render_report(query, model, scanned)
        case _:
            from spscanner_rag.apps.pages.terminal import render_documents

            return render_documents(scanned, output.stream(sys.stdout))
