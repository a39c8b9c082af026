"""A document with its scores and selected sentences, and its output.

The output is JSON, CSV, Markdown or a marked PDF.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spscanner_rag.files.documents import TextFile, name_of
from spscanner_rag.files.reading import bytes_of
from spscanner_rag.results import Passage, ScanResult, Selection
from spscanner_rag.results.offsets import Offsets, convert_offsets
from spscanner_rag.results.together import Together
from spscanner_rag.text.escaping import csv_cell, markdown_text

COLUMNS = (
    "rank score logit path page place headings line column start end neighbour"
    " text".split()
)


@dataclass(frozen=True)
class ScannedDocument:
    """A document and its selected passages.

    Parameters
    ----------
    document : TextFile
    result : ScanResult
    passages : tuple of Passage
        Selected sentences and neighbours, in the requested order. If they were merged,
        each is a run of sentences of which at least one was selected.
    ranks : mapping of int to int
        From the start of each selected sentence, or of each merged passage, to its
        rank, from 1, among those of all documents.
    merged : bool, default False
    """

    document: TextFile
    result: ScanResult
    passages: tuple[Passage, ...]
    ranks: Mapping[int, int]
    merged: bool = False

    def number(self, passage: Passage) -> int:
        """The index of the first sentence of a passage, from 0."""
        return int(np.searchsorted(self.result.starts, passage.start))

    def logit(self, passage: Passage) -> float:
        """The highest logit of the passage's sentences."""
        first, stop = np.searchsorted(
            self.result.starts, (passage.start, passage.end)
        ).tolist()
        return float(self.result.logits[first:stop].max())

    def spans(self) -> Iterator[tuple[int, int]]:
        """The spans of all sentences, those of a merged passage as one."""
        end_of_passage = {passage.start: passage.end for passage in self.passages}
        covered = 0
        starts = self.result.starts.tolist()
        ends = self.result.ends.tolist()
        for start, end in zip(starts, ends, strict=True):
            if start >= covered:
                covered = end_of_passage.get(start, end)
                yield start, covered

    @cached_property
    def picks(self) -> tuple[Passage, ...]:
        """The passages without the neighbours."""
        return tuple(
            passage for passage in self.passages if passage.start in self.ranks
        )


def select_together(
    documents: Sequence[TextFile], results: Sequence[ScanResult], selection: Selection
) -> list[ScannedDocument]:
    """Select from several documents together, as `Together` does.

    Documents keep their order.
    """
    together = Together(results)
    ranking = replace(selection, order="score")
    if not selection.merge:
        ranking = replace(ranking, context=0)
    best = together.select(ranking)
    ranks: list[dict[int, int]] = [{} for _ in results]
    for rank, (number, pick) in enumerate(best, start=1):
        ranks[number][pick.start] = rank
    passages: list[list[Passage]] = [[] for _ in results]
    for number, passage in together.select(selection):
        passages[number].append(passage)
    scanned: list[ScannedDocument] = []
    for number, (document, result) in enumerate(zip(documents, results, strict=True)):
        selected = tuple(passages[number])
        scanned.append(
            ScannedDocument(document, result, selected, ranks[number], selection.merge)
        )
    return scanned


UNCLEAR = 0.25
"""Below this probability that a document answers, views say that no sentence clearly
does."""

NOT_CLEAR = "No sentence clearly answers this; the nearest are:"


def is_unclear(documents: Sequence[ScannedDocument]) -> bool:
    """True if no document clearly answers.

    The scanner must estimate for each whether it does.
    """
    for document in documents:
        answerable = document.result.answerable
        if answerable is None or answerable >= UNCLEAR:
            return False
    return any(document.picks for document in documents)


class Compression(NamedTuple):
    """Tokens of a selection and of its document, by one tokenizer.

    ``selected`` are those of the selection, and ``total`` those of the document
    without the question.
    """

    selected: int
    total: int

    @property
    def share(self) -> float:
        """``selected / total``, or 0 for a document without tokens."""
        return self.selected / self.total if self.total else 0.0

    def __str__(self) -> str:
        percent = f"{100 * self.share:.1f} %"
        return f"{self.selected:,} of {self.total:,} tokens kept ({percent})"


def compression_of(documents: Sequence[ScannedDocument]) -> Compression | None:
    """Tokens of all passages, counted one by one, and of all documents.

    None without a token counter.
    """
    selected = total = 0
    for scanned in documents:
        count = scanned.result.count_tokens
        if count is None:
            return None
        selected += sum(count(passage.text) for passage in scanned.passages)
        tokens = scanned.result.n_tokens
        total += count(scanned.result.text) if tokens is None else tokens
    return Compression(selected, total)


def described(
    query: str,
    model: str,
    scanned: Sequence[ScannedDocument],
    offsets: Offsets = "characters",
) -> dict[str, object]:
    """Describe the result for JSON."""
    return {
        "query": query,
        "model": model,
        "documents": [_document(document, offsets) for document in scanned],
    }


def _document(scanned: ScannedDocument, offsets: Offsets) -> dict[str, object]:
    return {
        "path": scanned.document.path,
        "characters": len(scanned.document.text),
        "sentences": len(scanned.result.logits),
        "answerable": scanned.result.answerable,
        "passages": list(_passages(scanned, offsets)),
    }


def _passages(
    scanned: ScannedDocument, offsets: Offsets = "characters"
) -> Iterator[dict[str, Any]]:
    spans_in_text = [(passage.start, passage.end) for passage in scanned.passages]
    characters = np.array(spans_in_text, np.int64).reshape(-1, 2)
    spans = convert_offsets(scanned.document.text, characters, offsets).tolist()
    for passage, (start, end) in zip(scanned.passages, spans, strict=True):
        rank = scanned.ranks.get(passage.start)
        yield {
            **scanned.document.place(passage.start, passage.end),
            "start": start,
            "end": end,
            "rank": rank,
            "score": passage.score,
            "logit": scanned.logit(passage),
            "neighbour": rank is None,
            "text": passage.text,
        }


def to_lines(
    scanned: Sequence[ScannedDocument], offsets: Offsets = "characters"
) -> str:
    """Write a line of JSON for each selected sentence and each neighbour.

    It is for programs that read lines.
    """
    lines: list[str] = []
    for document in scanned:
        for passage in _passages(document, offsets):
            record = {"path": document.document.path, **passage}
            lines.append(json.dumps(record, allow_nan=False) + "\n")
    return "".join(lines)


def to_csv(scanned: Sequence[ScannedDocument], offsets: Offsets = "characters") -> str:
    """Write a CSV row for each selected sentence and each neighbour.

    The rows come document by document.
    """
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for document in scanned:
        for passage in _passages(document, offsets):
            headings = " > ".join(map(str, passage.get("headings", ())))
            row = passage | {
                "path": name_of(document.document.path),
                "headings": headings or None,
            }
            writer.writerow({name: csv_cell(value) for name, value in row.items()})
    return file.getvalue()


def to_markdown(query: str, scanned: Sequence[ScannedDocument]) -> str:
    """Write the selected sentences as lists.

    There is a section for each document that has some.
    """
    lines = [f"# {markdown_text(query)}"]
    n_without_picks = 0
    for document in scanned:
        if not document.picks:
            n_without_picks += 1
            if len(scanned) > 1:
                continue
        lines += ["", f"## {markdown_text(name_of(document.document.path))}", ""]
        for passage in document.picks:
            lines.append(_markdown_item(document, passage))
        if not document.picks:
            lines.append("No sentence was selected.")
    if n_without_picks and len(scanned) > 1:
        lines.append("")
        lines.append(
            f"No sentence was selected in {n_without_picks} of {len(scanned)}"
            " documents."
        )
    return "\n".join(lines) + "\n"


def _markdown_item(scanned: ScannedDocument, passage: Passage) -> str:
    line, column = scanned.document.position(passage.start)
    section = markdown_text(scanned.document.section(passage.start))
    place = f"{line}:{column}"
    if section:
        place = f"{section}, {place}"
    rank = scanned.ranks[passage.start]
    quote = markdown_text(passage.text)
    return f"- **{rank}** · {passage.score:.3f} · {place}: {quote}"


def check_is_pdf(documents: Sequence[TextFile]) -> None:
    """Raise ``ValueError`` unless there is one PDF that can be read again.

    There may be no other document.
    """
    if len(documents) != 1:
        raise ValueError(
            f"--out: got {len(documents)} documents for a PDF; expected one PDF: name"
            " it alone"
        )
    name = name_of(documents[0].path)
    if documents[0].words is None or name != documents[0].path:
        raise ValueError(
            f"--out: got {name} for a PDF; expected the file of a PDF; write --out"
            " page.html instead"
        )


def highlighted(query: str, scanned: ScannedDocument) -> tuple[bytes, tuple[str, ...]]:
    """Copy the PDF with a note on each pick (question, rank and score).

    Return the copy and notes for the user.
    """
    from spscanner_rag.files.readers.pdf_copy import Mark, marked_copy

    document = scanned.document
    marks: list[Mark] = []
    for pick in scanned.picks:
        boxes = document.boxes(pick.start, pick.end)
        rank = scanned.ranks[pick.start]
        note = f"{query}\n{rank} of {len(scanned.picks)}, score {pick.score:.3f}"
        marks.append(Mark(boxes, note, math.sqrt(pick.score)))
    return marked_copy(document.path, bytes_of(document.path), marks)
