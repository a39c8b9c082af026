"""Comparisons as JSON, CSV and Markdown: every pick of every retriever with its place."""

from collections.abc import Iterator, Sequence
from typing import Any

from spscanner_rag.apps.compare.retrievals import Retrieval, Retrievals
from spscanner_rag.apps.pages.scanned_document import csv_text, section_cells
from spscanner_rag.files.documents import TextFile, name_of
from spscanner_rag.text.escaping import markdown_text

COLUMNS = "retriever rank score only path page headings line column start end tokens evidence text".split()


def described(comparisons: Sequence[Retrievals]) -> dict[str, Any]:
    """The comparisons for JSON."""
    return {
        "query": comparisons[0].query,
        "counted_by": comparisons[0].counted_by,
        "documents": [
            {
                "path": each.path,
                "characters": len(each.text),
                "evidence": each.evidence,
                "evidence_sentences": [_quoted(each.document, *span) for span in each.evidence_sentences],
                "retrievers": [_retrieval(each.document, retrieval) for retrieval in each.retrievals],
            }
            for each in comparisons
        ],
    }


def _retrieval(document: TextFile, retrieval: Retrieval) -> dict[str, Any]:
    facts = ("name", "units", "seconds", "seconds_again", "tokens", "only", "found")
    picks = list(_picks(document, retrieval))
    return {**{fact: getattr(retrieval, fact) for fact in facts}, "picks": picks}


def _picks(document: TextFile, retrieval: Retrieval) -> Iterator[dict[str, Any]]:
    for pick in retrieval.picks:
        facts = {"rank": pick.rank, "score": pick.score, "tokens": pick.tokens, "only": pick.only}
        yield facts | _quoted(document, pick.start, pick.end)


def _quoted(document: TextFile, start: int, end: int) -> dict[str, Any]:
    return {**document.place(start, end), "text": document.text[start:end]}


def to_csv(comparisons: Sequence[Retrievals]) -> str:
    """A row for each pick, document by document and retriever by retriever."""
    return csv_text(
        COLUMNS,
        (
            {
                **pick,
                **section_cells(pick),
                "retriever": retrieval.name,
                "path": name_of(each.path),
                "evidence": each.touches_evidence(pick["start"], pick["end"]) if each.evidence else None,
            }
            for each in comparisons
            for retrieval in each.retrievals
            for pick in _picks(each.document, retrieval)
        ),
    )


def to_markdown(comparisons: Sequence[Retrievals]) -> str:
    """A section for each document with picks, in it a table of the retrievers, and their picks as lists."""
    lines = [f"# {markdown_text(comparisons[0].query)}"]
    shown = [each for each in comparisons if any(retrieval.picks for retrieval in each.retrievals)]
    for each in shown or comparisons:
        lines += ["", f"## {markdown_text(name_of(each.path) or 'the document')}", "", *_table(each)]
        for retrieval in each.retrievals:
            lines += ["", f"### {markdown_text(retrieval.name)}", ""]
            lines += [_item(each.document, pick) for pick in _picks(each.document, retrieval)] or ["No pick."]
    if len(shown) < len(comparisons):
        lines += ["", f"No pick in {len(comparisons) - len(shown)} of {len(comparisons)} documents."]
    return "\n".join(lines) + "\n"


def _table(comparison: Retrievals) -> Iterator[str]:
    yield "| retriever | picks | of units | only it | evidence found | tokens | seconds |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for each in comparison.retrievals:
        found = f"{sum(each.found)} of {len(each.found)}" if comparison.evidence else ""
        cells = [f"{len(each.picks):,}", f"{each.units:,}", f"{each.only:,}", found, f"{each.tokens:,}"]
        yield f"| {markdown_text(each.name)} | {' | '.join(cells)} | {each.seconds:.3f} |"


def _item(document: TextFile, pick: dict[str, Any]) -> str:
    section = document.section(pick["start"])
    place = ", ".join(filter(None, [markdown_text(section), f"{pick['line']}:{pick['column']}"]))
    only = " · only" if pick["only"] else ""
    return f"- **{pick['rank']}** · {pick['score']:.3f}{only} · {place}: {markdown_text(str(pick['text']))}"
