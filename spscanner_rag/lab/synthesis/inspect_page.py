"""A page that shows examples with both contexts, so that a person can judge them before training."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spscanner_rag.apps.pages.html_page import page_head, resource
from spscanner_rag.files.json_files import parse_json
from spscanner_rag.lab.evidence.questions import DataError, numbered_lines
from spscanner_rag.lab.synthesis.statistics import ExampleStatistics, histogram, statistics_of
from spscanner_rag.text.escaping import escaped, escaped_line

_AROUND = 400
"""Characters shown on either side of a context."""

_BAR, _HEIGHT = 420, 18


def example_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of examples; raises `DataError` for one that is none, with its number."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
            text, questions = record["text"], record["questions"]
            for question in questions:
                if not all(0 <= start < end <= len(text) for start, end in question.get("evidence", [])):
                    raise ValueError("evidence outside the text")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(
                f"{path}, line {number}: expected a document with its questions, got {line[:60]!r} ({error!r:.60})"
            ) from None
        yield record


def inspect_page(path: Path, examples: int = 100) -> str:
    """The page of a file of examples: numbers of all of them, and the first ``examples``.

    Reasons and costs are those of ``summary.json`` in the same folder, if it is there. The page has no script and
    loads nothing.
    """
    statistics = statistics_of(example_lines(path))
    summary_path = path.with_name("summary.json")
    summary = parse_json(summary_path.read_text(encoding="utf-8")) if summary_path.exists() else {}
    parts = [
        page_head(f"Examples in {path.name}", resource(__package__, "inspect.css")),
        f"<body>\n<h1>Examples in {escaped_line(str(path))}</h1>\n",
        *_numbers(statistics, summary),
        f"<h2>The first {min(examples, statistics.examples):,} of {statistics.examples:,} examples</h2>\n",
    ]
    for line in islice(example_lines(path), examples):
        parts += _example(line)
    return "".join([*parts, "</body>\n</html>\n"])


def _numbers(statistics: ExampleStatistics, summary: Mapping[str, Any]) -> Iterator[str]:
    yield _table(statistics.rows())
    yield _bars(
        "Where labelled sentences begin, by tenths of the sub-document",
        [(f"{10 * n} to {10 * n + 10} %", count) for n, count in enumerate(statistics.tenths())],
    )
    yield _bars("Units between the two sides", histogram(statistics.distances))
    yield _bars("Characters of the sub-documents", histogram(statistics.lengths))
    for title, key in (
        ("Why sub-documents were dropped", "dropped"),
        ("Why documents were left out", "documents_left_out"),
        ("Replies that were asked for again", "malformed_replies"),
    ):
        if isinstance(reasons := summary.get(key), dict) and reasons:
            yield f"<h2>{title}</h2>\n{_table([(reason, str(count)) for reason, count in reasons.items()])}"
    costs = [
        (name, f"{summary[name]:,}", f"{estimate[name]:,}" if name in estimate else "")
        for estimate in [summary.get("estimate") or {}]
        for name in ("requests", "prompt_tokens", "reply_tokens", "cost")
        if isinstance(summary.get(name), int | float)
    ]
    if costs:
        yield "<h2>Cost</h2>\n<table><tr><th></th><th>spent</th><th>estimated</th></tr>\n"
        for name, spent, estimated in costs:
            yield (
                f'<tr><td>{name.replace("_", " ")}</td><td class="n">{escaped_line(spent)}</td>'
                f'<td class="n">{escaped_line(estimated)}</td></tr>\n'
            )
        yield "</table>\n"


def _example(line: Mapping[str, Any]) -> Iterator[str]:
    text, made = line["text"], line.get("synthesis") or line.get("annotation") or {}
    title = escaped_line(str(line.get("title") or line.get("doc_id", "")))
    yield f"<article>\n<h2>{title}</h2>\n"
    for question in line["questions"]:
        spans = sorted(tuple(span) for span in question.get("evidence", []))
        yield f'<p class="q" dir="auto">{escaped(str(question.get("question", "")))}</p>\n'
        if question.get("answers"):
            yield f'<p dir="auto">Answer: {escaped(", ".join(map(str, question["answers"])))}</p>\n'
        if "connection" in made:
            yield f'<p dir="auto">Connection: {escaped(str(made["connection"]))}</p>\n'
        known = ("strategy", "distance", "similarity", "size", "tokens", "model", "mode")
        facts = [f"{key} {made[key]}" for key in known if key in made]
        yield f'<p class="facts">{escaped_line(" · ".join(facts))}</p>\n'
        for start, end in _contexts(made.get("contexts"), spans, len(text)):
            yield f'<div class="side" dir="auto">{_marked(text, start, end, spans)}</div>\n'
    yield "</article>\n"


def _contexts(contexts: object, spans: Sequence[tuple[int, ...]], length: int) -> Iterator[tuple[int, int]]:
    """The stretches to show: contexts and labelled spans, with some text around them, joined where they meet."""
    wanted = [tuple(span) for span in contexts] if isinstance(contexts, list) else []
    merged: list[list[int]] = []
    for start, end in sorted([*wanted, *spans]):
        start, end = max(0, start - _AROUND), min(length, end + _AROUND)
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return ((start, end) for start, end in merged)


def _marked(text: str, start: int, end: int, spans: Sequence[tuple[int, ...]]) -> str:
    parts, cursor = [], start
    for first, last in spans:
        if last <= cursor or first >= end:
            continue
        first, last = max(first, cursor), min(last, end)
        parts += [escaped(text[cursor:first]), f"<mark>{escaped(text[first:last])}</mark>"]
        cursor = last
    return "".join([*parts, escaped(text[cursor:end])])


def _table(rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td>{escaped_line(name)}</td><td>{escaped_line(value)}</td></tr>\n" for name, value in rows
    )
    return f"<table>\n{cells}</table>\n"


def _bars(title: str, bars: Sequence[tuple[str, int]]) -> str:
    most = max((count for _, count in bars), default=0)
    if not most:
        return ""
    height = _HEIGHT * len(bars)
    drawn = "".join(
        f'<text x="0" y="{_HEIGHT * n + 13}">{escaped_line(name)}</text>'
        f'<rect x="130" y="{_HEIGHT * n + 3}" width="{round(_BAR * count / most)}" height="12"/>'
        f'<text x="{135 + round(_BAR * count / most)}" y="{_HEIGHT * n + 13}">{count:,}</text>'
        for n, (name, count) in enumerate(bars)
    )
    label = escaped_line(title)
    figure = f'<svg width="620" height="{height}" role="img" aria-label="{label}">{drawn}</svg>'
    return f"<h2>{label}</h2>\n{figure}\n"
