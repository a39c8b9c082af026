"""``spscanner compare``: what several retrievers find in the same documents."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spscanner_rag.apps.cli.declaring import grouped, option
from spscanner_rag.apps.cli.model_options import RetrieverOptions
from spscanner_rag.apps.cli.output_options import OutputFormat, OutputOptions
from spscanner_rag.apps.cli.shared_options import FILES, OCR, PROGRESS, QUERY
from spscanner_rag.scorers import check_query
from spscanner_rag.system.strict_json import json_text
from spscanner_rag.text.token_counts import check_counter

if TYPE_CHECKING:
    from spscanner_rag.apps.compare import Comparison
    from spscanner_rag.baselines.settings import Setting
    from spscanner_rag.scorers import Scorer

JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "counted_by": str, "documents": [
  {"path": str, "characters": int, "evidence": [[start, end]],
   "evidence_sentences": [{"start", "end", "line", "column", "text"}],
   "retrievers": [
     {"name": str, "units": int, "seconds": float, "seconds_again": float,
      "tokens": int, "only": int, "found": [bool], "picks": [
       {"rank": int, "start": int, "end": int, "line": int, "column": int,
        "score": float, "tokens": int, "only": bool, "text": str}]}]}]}

In documents with pages or headings, picks also have page and page_number, or headings.
rank counts the picks of all documents; start and end count characters of the text that
was read (--text-out writes it), from 0, end excluded; only is true for a pick that no
other retriever found, and counts these for a retriever; found has a value for each
evidence sentence: whether at least half of it lies inside the picks.
"""

TOP_K = {"sentence": 10, "chunk": 1, "passage": 3, "document": 1}
"""Default picks by unit, about the same amount of text each; the paper equates 1
chunk with 10 sentences."""

_SPAN = re.compile(r"\s*(\d+)-(\d+)\s*", re.ASCII)


@grouped
def compare(
    files: list[str] = FILES,
    query: str = QUERY,
    *,
    computes: RetrieverOptions,
    top_k: str | None = option(
        None,
        "Picks per retriever: a number, or one per unit; default: 10 sentences, 1"
        " chunk, 3 passages, 1 document.",
        "NUMBER,...",
    ),
    evidence: str | None = option(
        None,
        "Answering spans of a single FILE, in characters from 0, END excluded.",
        "START-END,...",
    ),
    output: OutputOptions,
    count_tokens: str | None = option(
        None,
        "Token counter, e.g. o200k_base; default: the first scanner's, else the"
        " bundled.",
        "ENCODING",
    ),
    ocr: str = OCR,
    progress: bool | None = PROGRESS,
) -> None:
    """Show what several retrievers find for a question, side by side.

    Each retriever has a column, which marks what only it found and, with --evidence,
    what it missed. Each FILE is a separate document, and each retriever ranks all of
    them together.
    """
    from spscanner_rag.apps.compare.comparison import (
        check_evidence_spans,
        check_top_k,
        compare_together,
    )
    from spscanner_rag.apps.compare.terminal import retriever_progress
    from spscanner_rag.baselines.names import scorer_of
    from spscanner_rag.system.threads import use_threads

    check_query(query, "--query")
    settings: dict[str, Setting] = {}
    for setting in computes.settings:
        label = setting.retriever
        if setting.unit != "sentence":
            label = f"{setting.retriever} ({setting.unit})"
        settings[label] = setting
    picks = _picks(top_k, computes.units)
    numbers = [picks[setting.unit] for setting in computes.settings]
    check_top_k(numbers, len(settings))
    check_counter(count_tokens)
    spans = _spans(evidence)
    if output.form not in (OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.HTML):
        raise ValueError(
            f"--format: got {output.form}; expected text, json or html for a comparison"
        )
    model_files = computes.model_files()
    documents = output.read_documents(files, other_inputs=model_files, ocr=ocr)
    check_evidence_spans(spans, documents)
    use_threads(computes.threads)
    scorers: dict[str, Scorer] = {}
    for label, setting in settings.items():
        scorers[label] = scorer_of(setting.retriever, computes.loading(setting.unit))
    turns = len(documents) * len(scorers)
    with retriever_progress(progress, turns) as started:
        comparisons = compare_together(
            query,
            documents,
            scorers,
            top_k=numbers,
            evidence=spans,
            count_tokens=count_tokens,
            started=started,
        )
    output.write(documents, _rendered(output, comparisons))


def _spans(evidence: str | None) -> list[tuple[int, int]]:
    """The spans in ``--evidence``."""
    spans: list[tuple[int, int]] = []
    words = [] if evidence is None else evidence.split(",")
    for word in words:
        match = _SPAN.fullmatch(word)
        if match is None:
            raise ValueError(
                f"--evidence: got {evidence!r}; expected START-END,..., such as"
                " 120-188, in characters from 0"
            )
        spans.append((int(match[1]), int(match[2])))
    return spans


def _picks(value: str | None, units: list[str]) -> dict[str, int]:
    """The number of picks for each unit.

    It is there for sentences too, because a scanner always ranks sentences.
    """
    picks = {unit: TOP_K[unit.partition(":")[0]] for unit in ["sentence", *units]}
    if value is None:
        return picks
    words = value.split(",")
    numbers = [
        int(word) for word in words if re.fullmatch(r"\s*\d{1,9}\s*", word, re.ASCII)
    ]
    if len(numbers) < len(words) or len(words) not in (1, len(units)):
        raise ValueError(
            f"--top-k: got {value!r}; expected one whole number, or one for each of"
            f" {', '.join(units)}"
        )
    if len(numbers) == 1:
        return dict.fromkeys(picks, numbers[0])
    return picks | dict(zip(units, numbers, strict=True))


def _rendered(output: OutputOptions, comparisons: "Sequence[Comparison]") -> str:
    match output.form:
        case OutputFormat.JSON:
            from spscanner_rag.apps.compare.comparison import described

            return json_text(described(comparisons))
        case OutputFormat.HTML:
            from spscanner_rag.apps.compare.page import render_comparisons

            return render_comparisons(comparisons)
        case _:
            from spscanner_rag.apps.compare.terminal import render_text

            return render_text(comparisons, output.stream(sys.stdout))
