"""A page that shows examples with both contexts, so that a person can judge them before training."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spscanner_rag.apps.pages.html_page import page_style, render

_AROUND = 400  # characters shown on either side of a context
_FACTS = ("strategy", "distance", "similarity", "size", "tokens", "model", "mode")

Numbers = Sequence[tuple[str, int]]


def render_examples(
    path: Path,
    count: int,
    numbers: Sequence[tuple[str, str]],
    bars: Mapping[str, Numbers],
    summary: Mapping[str, Any],
    examples: Iterable[Mapping[str, Any]],
) -> str:
    """The page of a file of ``count`` examples, without a script.

    ``bars`` has counts with their names, by title; ``summary`` is the run's ``summary.json``, perhaps empty.
    """
    reasons = {
        "Why sub-documents were dropped": summary.get("dropped"),
        "Why documents were left out": summary.get("documents_left_out"),
        "Replies that were asked for again": summary.get("malformed_replies"),
    }
    estimate = summary.get("estimate") or {}
    costs = [
        (name.replace("_", " "), f"{summary[name]:,}", f"{estimate[name]:,}" if name in estimate else "")
        for name in ("requests", "prompt_tokens", "reply_tokens", "cost")
        if isinstance(summary.get(name), int | float)
    ]
    return render(
        "pages/templates/examples.html",
        f"Examples in {path.name}",
        page_style("pages/templates/examples.css"),
        path=str(path),
        count=count,
        numbers=numbers,
        bars={title: own for title, own in bars.items() if any(number for _, number in own)},
        reasons={title: found for title, found in reasons.items() if isinstance(found, dict) and found},
        costs=costs,
        examples=[_example(line) for line in examples],
    )


def _example(line: Mapping[str, Any]) -> dict[str, object]:
    made = line.get("synthesis") or {}
    text = line["text"]
    questions = []
    for question in line["questions"]:
        evidence = sorted(tuple(span) for span in question.get("evidence", []))
        shown = _stretches([*(made.get("contexts") or []), *evidence], len(text))
        questions.append(
            {
                "text": str(question.get("question", "")),
                "answers": [str(answer) for answer in question.get("answers") or []],
                "sides": [list(_marked(text, start, end, evidence)) for start, end in shown],
            }
        )
    return {
        "title": str(line.get("title") or line.get("doc_id", "")),
        "connection": made.get("connection"),
        "facts": " · ".join(f"{key} {made[key]}" for key in _FACTS if key in made),
        "questions": questions,
    }


def _stretches(spans: Iterable[Sequence[int]], length: int) -> list[list[int]]:
    """The stretches to show: spans with some text around them, joined where they meet."""
    merged: list[list[int]] = []
    for start, end in sorted(map(tuple, spans)):
        start, end = max(0, start - _AROUND), min(length, end + _AROUND)
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def _marked(text: str, start: int, end: int, spans: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, bool]]:
    """The text from start to end in parts, each with whether it is labelled."""
    for first, last in spans:
        if last <= start or first >= end:
            continue
        yield text[start : max(start, first)], False
        yield text[max(start, first) : min(last, end)], True
        start = min(last, end)
    yield text[start:end], False
