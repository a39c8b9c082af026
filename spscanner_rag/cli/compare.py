"""``spscanner compare``: what several retrievers find in the same documents, side by side."""

import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spscanner_rag.cli.arguments import names_in
from spscanner_rag.files.documents import TextFile, read_text_files
from spscanner_rag.files.output import check_output, write_output
from spscanner_rag.scorers import check_query

if TYPE_CHECKING:
    from spscanner_rag.comparison.comparison import Comparison
    from spscanner_rag.scorers import Scorer

JSON_LAYOUT = """JSON is one object:

\b
{"query": str, "counted_by": str, "documents": [
  {"path": str, "characters": int, "evidence": [[start, end]],
   "evidence_sentences": [{"start", "end", "line", "column", "text"}],
   "retrievers": [
     {"name": str, "units": int, "seconds": float, "tokens": int, "only": int, "found": [bool], "picks": [
       {"rank": int, "start": int, "end": int, "line": int, "column": int, "score": float,
        "tokens": int, "only": bool, "text": str}]}]}]}

start and end count the characters of the decoded text from 0, end excluded; only is what no other retriever
picked; found says of each evidence sentence whether at least half of it lies inside the picks.
"""

TOP_K = {"sentence": 10, "chunk": 1, "passage": 3, "document": 1}
"""About as much text of each; chunks and sentences stand 1 to 10, as in the paper."""

_SPAN = re.compile(r"\s*(\d+)-(\d+)\s*", re.ASCII)


class ComparisonFormat(StrEnum):
    """How a comparison is written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def compare(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="UTF-8 text files; - is standard input.")
    ],
    query: Annotated[str, typer.Option("--query", "-q", help="The question.")],
    retrievers: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="scanner[:MODEL], bm25, dense[:MODEL], crossencoder:MODEL, mamba:MODEL, propositions:MODEL, "
            "hybrid:A+B.",
        ),
    ] = "scanner,bm25,dense",
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT,...",
            help="sentence, chunk (300 words), passage, document; each retriever in each unit, a scanner in "
            "sentences only.",
        ),
    ] = "sentence",
    top_k: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,...",
            help="Picks of each retriever; one number, or one for each unit. Default: 10 sentences, 1 chunk, 3 "
            "passages, 1 document.",
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            metavar="START-END,...",
            help="Characters of the one FILE that answer the question, from 0, END excluded.",
            show_default=False,
        ),
    ] = None,
    output_format: Annotated[
        ComparisonFormat | None,
        typer.Option(
            "--format",
            help="Text, JSON, or one HTML page; default by the ending of --out, else text.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write instead of standard output.", show_default=False)
    ] = None,
    count_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="ENCODING",
            help="What counts tokens: a tiktoken encoding such as o200k_base; default the first scanner, else "
            "the bundled checkpoint.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="Of scanners: auto, float32, bfloat16 or int8.")] = "auto",
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let models from the Hub run their own code.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Progress on standard error; default if a terminal."),
    ] = None,
) -> None:
    """Show what several retrievers find for a question, side by side.

    A column for each retriever, with what only that one found and, where evidence is given, what it missed.
    Each FILE is a document of its own.
    """
    check_query(query, "--query")
    settings = _settings(names_in("--retrievers", retrievers), names_in("--unit", unit), top_k)
    _check(settings, count_tokens)
    spans = _parse_evidence(evidence, len(files))
    documents = read_text_files(files)
    _check_evidence(spans, documents)
    if out is not None:
        check_output(out, files)
    scorers = _load(settings, device, dtype, trust_remote_code)
    numbers = [number for _, _, number in settings.values()]
    show_progress = sys.stderr.isatty() if progress is None else progress
    comparisons = _compare_all(query, documents, scorers, numbers, spans, count_tokens, show_progress)
    chosen = output_format or _format_of(out)
    content = _render(chosen, comparisons, out)
    write_output(content, out, is_page=chosen is ComparisonFormat.HTML)


Settings = dict[str, tuple[str, str, int]]
"""Retriever string, unit and number of picks, by the name to show."""


def _settings(names: list[str], units: list[str], top_k: str | None) -> Settings:
    from spscanner_rag.baselines.named import units_for
    from spscanner_rag.baselines.units import segmenter_of

    for unit in units:
        segmenter_of(unit)  # type: ignore[arg-type]  # which says what it takes
    numbers = _parse_top_k(top_k, units)
    settings: Settings = {}
    for name in names:
        for unit in units_for(name, units):
            label = name if unit == "sentence" else f"{name} ({unit})"
            settings[label] = (name, unit, numbers.get(unit, TOP_K[unit]))
    return settings


def _parse_top_k(value: str | None, units: list[str]) -> dict[str, int]:
    if value is None:
        return {}
    words = value.split(",")
    if not all(re.fullmatch(r"\s*\d{1,9}\s*", word, re.ASCII) for word in words) or len(words) not in (
        1,
        len(units),
    ):
        raise ValueError(
            f"--top-k: got {value!r}; expected one whole number, or one for each of {', '.join(units)}"
        )
    numbers = [int(word) for word in words]
    if len(numbers) == 1:  # for a scanner too, whose sentences need not be among the units
        return dict.fromkeys(["sentence", *units], numbers[0])
    return dict(zip(units, numbers, strict=True))


def _parse_evidence(value: str | None, files: int) -> list[tuple[int, int]]:
    if value is None:
        return []
    if files > 1:
        raise ValueError(f"--evidence: got {files} documents; expected one, whose characters it counts")
    spans = []
    for word in value.split(","):
        match = _SPAN.fullmatch(word)
        if match is None:
            raise ValueError(
                f"--evidence: got {word!r}; expected START-END,..., such as 120-188, in characters from 0"
            )
        spans.append((int(match[1]), int(match[2])))
    return spans


def _check(settings: Settings, count_tokens: str | None) -> None:
    """Raise ``ValueError`` for what needs no file and no model to be found."""
    from spscanner_rag.baselines.named import check_name
    from spscanner_rag.comparison.arguments import check_top_k
    from spscanner_rag.text.token_counts import check_counter

    check_top_k([number for _, _, number in settings.values()], len(settings))
    check_counter(count_tokens)
    for name, _, _ in settings.values():
        check_name(name)


def _check_evidence(spans: list[tuple[int, int]], documents: Sequence[TextFile]) -> None:
    from spscanner_rag.comparison.arguments import check_evidence_spans

    check_evidence_spans(spans, documents[0].text)


def _load(settings: Settings, device: str, dtype: str, trust_remote_code: bool) -> "dict[str, Scorer]":
    from spscanner_rag.baselines.named import Options, scorer_of

    return {
        label: scorer_of(name, Options(unit, device, dtype, trust_remote_code))  # type: ignore[arg-type]
        for label, (name, unit, _) in settings.items()
    }


def _compare_all(
    query: str,
    documents: Sequence[TextFile],
    scorers: "Mapping[str, Scorer]",
    numbers: list[int],
    evidence: list[tuple[int, int]],
    count_tokens: str | None,
    show_progress: bool,
) -> "list[Comparison]":
    from spscanner_rag.comparison import comparison
    from spscanner_rag.comparison.terminal import retriever_progress

    with retriever_progress(show_progress, len(documents) * len(scorers), sys.stderr) as started:
        return [
            comparison.compare(
                query,
                document.text,
                scorers,
                top_k=numbers,
                evidence=evidence,
                count_tokens=count_tokens,
                path=document.path,
                started=started,
            )
            for document in documents
        ]


def _format_of(out: Path | None) -> ComparisonFormat:
    ending = out.suffix.lower() if out else ""
    if ending in (".html", ".htm"):
        return ComparisonFormat.HTML
    return ComparisonFormat.JSON if ending == ".json" else ComparisonFormat.TEXT


def _render(output_format: ComparisonFormat, comparisons: "Sequence[Comparison]", out: Path | None) -> str:
    if output_format is ComparisonFormat.JSON:
        from spscanner_rag.comparison.json_output import render_json

        return render_json(comparisons)
    if output_format is ComparisonFormat.HTML:
        from spscanner_rag.comparison.page import render_comparisons

        return render_comparisons(comparisons)
    from spscanner_rag.comparison.terminal import render_text

    return render_text(comparisons, StringIO() if out else sys.stdout)
