"""Scanned documents as JSON, CSV and Markdown: every selected sentence with its place."""

from collections.abc import Iterator, Sequence

from spscanner_rag.apps.pages.rows import csv_text, section_cells
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import name_of
from spscanner_rag.text.escaping import markdown_text

COLUMNS = "rank score logit path page headings line column start end neighbour text".split()


def described(query: str, model: str, scanned: Sequence[ScannedDocument]) -> dict[str, object]:
    """The result for JSON."""
    return {"query": query, "model": model, "documents": [_document(each) for each in scanned]}


def _document(scanned: ScannedDocument) -> dict[str, object]:
    return {
        "path": scanned.document.path,
        "characters": len(scanned.document.text),
        "sentences": len(scanned.result.logits),
        "passages": list(_passages(scanned)),
    }


def _passages(scanned: ScannedDocument) -> Iterator[dict[str, object]]:
    for passage in scanned.passages:
        rank = scanned.ranks.get(passage.start)
        yield {
            **scanned.document.place(passage.start, passage.end),
            "rank": rank,
            "score": passage.score,
            "logit": float(scanned.result.logits[scanned.number(passage)]),
            "neighbour": rank is None,
            "text": passage.text,
        }


def to_csv(scanned: Sequence[ScannedDocument]) -> str:
    """A row for each selected sentence and each neighbour, document by document."""
    return csv_text(
        COLUMNS,
        (
            {**passage, **section_cells(passage), "path": name_of(each.document.path)}
            for each in scanned
            for passage in _passages(each)
        ),
    )


def to_markdown(query: str, scanned: Sequence[ScannedDocument]) -> str:
    """The selected sentences as lists, a section for each document that has some."""
    lines = [f"# {markdown_text(query)}"]
    for each in scanned:
        if not each.picks and len(scanned) > 1:
            continue
        lines += ["", f"## {markdown_text(name_of(each.document.path))}", ""]
        for passage in each.picks:
            line, column = each.document.position(passage.start)
            section = each.document.section(passage.start)
            place = ", ".join(filter(None, [markdown_text(section), f"{line}:{column}"]))
            rank = each.ranks[passage.start]
            lines.append(f"- **{rank}** · {passage.score:.3f} · {place}: {markdown_text(passage.text)}")
        if not each.picks:
            lines.append("No sentence was selected.")
    if left := sum(not each.picks for each in scanned) if len(scanned) > 1 else 0:
        lines += ["", f"No sentence was selected in {left} of {len(scanned)} documents."]
    return "\n".join(lines) + "\n"
