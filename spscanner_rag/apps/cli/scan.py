"""``spscanner scan``: show the sentences of documents that answer a question."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import typer

from spscanner_rag.apps.cache import ReadCache, cache_folder
from spscanner_rag.apps.cli.options import (
    CACHE,
    FILES,
    MODEL,
    PROGRESS,
    SEGMENT_TOKENS,
    OutputFormat,
    OutputOptions,
    ScannerOptions,
    checked_selection,
    grouped,
    option,
    tell,
)
from spscanner_rag.apps.pages import scanned_document
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import STANDARD_INPUT, TextFile
from spscanner_rag.files.reading import named_kind
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results import Selection
from spscanner_rag.results.sentences import Offsets, check_offsets
from spscanner_rag.scorers import check_query, segment
from spscanner_rag.system.strict_json import json_text

if TYPE_CHECKING:
    from spscanner_rag import Scanner
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.scan.prepare import PreparedText

# \b keeps the program's help from re-wrapping a paragraph.
JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "model": str, "documents": [
  {"path": str, "characters": int, "sentences": int, "answerable": float or null, "passages": [
    {"start": int, "end": int, "line": int, "column": int, "page": str, "page_number": int,
     "boxes": [[page, x0, y0, x1, y1]], "headings": [str], "rank": int,
     "score": float, "logit": float, "neighbour": bool, "text": str}]}]}

start and end count characters of the text that was read (--text-out writes it), from 0, end excluded. Documents
with pages have page and page_number, documents with headings have headings, and a PDF has boxes, in points from
the lower left of a page. --format jsonl writes one passage per line, with its path. answerable is the probability
that the document answers the question, if the checkpoint estimates it; rank counts the sentences of all
documents; score is the sigmoid of logit; neighbour is true, and rank null, for a sentence that --context added.
"""


MEASURED_SECONDS = 1.0  # seconds of reading, enough to know its speed
WORTH_A_LINE = 5.0  # seconds; shorter waits are not announced
SCANS_FASTER = 6  # times faster than the encoder reads


@grouped
def scan(
    files: list[str] = FILES,
    query: str | None = option(
        None,
        "The question; without it, a prompt asks for questions.",
        names=("--query", "-q"),
    ),
    *,
    top_k: str = option(
        "10",
        "Sentences to show, of all files together: a number, a share below 1 (at least"
        ' 10), "elbow" or "elbow:5-30" (those above the steepest drop of the scores),'
        ' or "all".',
        names=("--top-k", "-k"),
    ),
    threshold: float | None = option(
        None, "Lowest score, 0 to 1, inclusive; exit code 1 if none has it."
    ),
    max_tokens: int | None = option(
        None, "Token budget for everything shown, the best sentences first."
    ),
    count_tokens: str | None = option(
        None,
        "What --max-tokens counts: a tiktoken encoding such as o200k_base; default: the"
        " model's.",
        "ENCODING",
    ),
    context: int | None = option(
        None, "Neighbours on each side of a sentence; default: 1 for text, else 0."
    ),
    diversity: float = option(
        1.0, "0 to 1; below 1, sentences that repeat better ones are skipped."
    ),
    order: str = option(
        "score", "Best first, or in document order.", "[score|document]"
    ),
    offsets: str = option(
        "characters", "What start and end count: characters, utf16 or bytes."
    ),
    output: OutputOptions,
    model: str | None = MODEL,
    computes: ScannerOptions,
    segment_tokens: int | None = SEGMENT_TOKENS,
    cache: bool = CACHE,
    progress: bool = PROGRESS,
) -> None:
    """Show the sentences of documents that answer a question.

    The question may also be the last word: spscanner scan report.pdf "Who signed it?".
    Each FILE is read on its own; one ranking covers all files and is shown file by
    file. A position is the page of a PDF, or line:column of the text, both counted from
    1 and columns in characters, with the heading above. A byte order mark is not part
    of the text.
    """
    last = files[-1]
    is_file = (
        last == STANDARD_INPUT
        or named_kind(last)
        or os.path.lexists(last.partition("\0")[0])
    )
    if (
        query is None and len(files) > 1 and not is_file
    ):  # the last word is not a file, so it is the question
        files, query = files[:-1], last
    places = check_offsets(offsets, "--offsets")
    if query is not None:
        check_query(query, "--query")
    elif not sys.stdin.isatty() or output.out or output.form is not OutputFormat.TEXT:
        raise ValueError(
            "--query: got none; expected a question: the prompt needs a terminal, and"
            " shows text only"
        )
    selection = checked_selection(
        top_k,
        threshold=threshold,
        max_tokens=max_tokens,
        count_tokens=count_tokens,
        context=(
            context if context is not None else int(output.form is OutputFormat.TEXT)
        ),
        order=order,
        diversity=diversity,
    )
    kept = ReadCache(cache_folder()) if cache else None
    documents = output.read(files, kept, progress)
    if output.form is OutputFormat.PDF:
        scanned_document.check_is_pdf(documents)
    scanner = computes.scanner(model, segment_tokens, kept)
    reading = _Reading(scanner, documents, progress)
    for asked in _questions() if query is None else (query,):
        scanned = reading.scanned(asked, selection)
        if order == "score" and output.form is not OutputFormat.JSON:
            scanned.sort(key=lambda each: min(each.ranks.values(), default=sys.maxsize))
        output.write(
            documents,
            _rendered(output, asked, scanner.checkpoint.source, scanned, places),
        )
    if (
        query is not None
        and threshold is not None
        and not any(each.picks for each in scanned)
    ):
        raise typer.Exit(1)


class _Reading:
    """Documents that are segmented, tokenized, counted and encoded once, and scanned for each question."""

    def __init__(
        self, scanner: "Scanner", documents: Sequence[TextFile], progress: bool
    ) -> None:
        self.scanner, self.documents, self.progress = scanner, documents, progress
        self.told = not progress  # whether the expected time was announced
        self.prepared = [
            scanner.reading.prepare(each.text, segment(scanner, each.text, each.blocks))
            for each in documents
        ]
        self.collection: CollectionIndex | None = None
        if scanner.uses_collection and len(documents) > 1:
            self.collection = CollectionIndex()
            for number, each in enumerate(self.prepared):
                self.collection.add_words(str(number), each.words)
        if scanner.meaning is not None:
            self._encode(scanner.meaning)

    def _encode(self, meaning: "Meaning") -> None:
        from spscanner_rag.scan.pipeline import Meter

        left, before = (
            [each for each in self.prepared if not meaning.has(each.sentences)],
            0,
        )
        with self._bar("encoding", _tokens(left)) as show:
            for number, each in enumerate(left, 1):
                size = len(each.input_ids)
                meter = Meter(
                    partial(show, f"{number:,} of {len(left):,}", before, size)
                )
                meaning.vectors(each.sentences, meter.expect, meter.after_step)
                before += size

    @contextmanager
    def _bar(self, doing: str, size_of_all: int) -> Iterator[Callable[..., None]]:
        """Within the block, show one bar over the tokens of all texts.

        The yielded function takes a label for the current texts, the tokens of the
        texts before them, their own tokens, and how far they are read: ``done`` of
        ``total``.
        """
        from rich.progress import TextColumn, TimeRemainingColumn

        from spscanner_rag.apps.pages.terminal import progress_bars

        columns = TextColumn("tokens"), TimeRemainingColumn()
        with progress_bars(
            self.progress and size_of_all > 0, *columns, transient=True
        ) as bars:
            task, first = bars.add_task(doing, total=size_of_all), (0.0, 0)

            def show(of: str, before: int, size: int, done: int, total: int) -> None:
                nonlocal first
                read, now = before + size * done // max(total, 1), monotonic()
                bars.update(task, description=f"{doing} {of} documents", completed=read)
                first = (
                    first if first[0] else (now, read)
                )  # the time before the first call includes loading
                seconds, read = now - first[0], read - first[1]
                if self.told or seconds < MEASURED_SECONDS or not read:
                    return
                self.told, tokens = True, _tokens(self.prepared)
                scan_too = tokens / SCANS_FASTER if doing == "encoding" else 0
                if (takes := (size_of_all + scan_too) * seconds / read) >= WORTH_A_LINE:
                    bars.console.print(
                        f"reading {tokens:,} tokens, about {takes:.0f} s"
                    )

            yield show

    def scanned(self, query: str, selection: Selection) -> list[ScannedDocument]:
        """Score the documents for a question, and select sentences from all of them together."""
        texts = [
            self.scanner.pipeline.request(
                query, document.text, prepared.units
            )._replace(prepared=prepared)
            for document, prepared in zip(self.documents, self.prepared, strict=True)
        ]
        size = _tokens(self.prepared)
        with self._bar("scanning", size) as show:
            report = partial(show, f"{len(texts):,}", 0, size)
            results = self.scanner.scan_many(
                texts, collection=self.collection, progress=report
            )
        self.told = True
        return scanned_document.select_together(self.documents, results, selection)


def _tokens(texts: Sequence["PreparedText"]) -> int:
    return sum(len(each.input_ids) for each in texts)


def _questions() -> Iterator[str]:
    """Yield questions typed at a prompt, with a history where readline exists, until Ctrl-D or Ctrl-C."""
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
