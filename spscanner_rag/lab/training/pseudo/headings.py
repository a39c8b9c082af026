"""Headings of a plain text as questions about their sections."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from spscanner_rag.lab.evidence.questions import Question

SECTION_SENTENCES = 12
"""Sentences at the start of a section that are evidence: later ones stray from the heading."""

_LINE = re.compile(r"[^\n]+")
_MOST_CHARACTERS, _MOST_WORDS = 80, 12
_LEAST_BODY_CHARACTERS = 80
_NUMBERING = re.compile(r"^(?:(?:chapter|section|part|article|schedule)\s+)?[\divxlc.()]+[.):]?\s+", re.I)
_WORD = re.compile(r"[^\W\d_]{3,}")


def heading_questions(
    text: str, spans: Sequence[tuple[int, int]], count: int, draw: random.Random
) -> list[Question]:
    """A `QuestionMaker` of headings; their evidence is one span, the heading and its section's first sentences."""
    found = []
    for start, body, stop in _sections(text):
        inside = [span for span in spans if span[1] > body and span[0] < stop][:SECTION_SENTENCES]
        title = _NUMBERING.sub("", text[start:body].strip()) or text[start:body].strip()
        if inside and _WORD.search(title):
            end = min(inside[-1][1], stop)
            found.append(Question("heading", title, ((start, end),)))
    times = Counter(question.text for question in found)
    kept = [question for question in found if times[question.text] == 1]  # others have several sections
    return draw.sample(kept, min(count, len(kept)))


def _sections(text: str) -> Iterator[tuple[int, int, int]]:
    """Start of each heading, of its body, and the end of its section."""
    lines = [match.span() for match in _LINE.finditer(text) if match.group().strip()]
    headings = [
        (line, body)
        for line, body in pairwise(lines)
        if _is_heading(text[slice(*line)].strip())
        and len(text[slice(*body)].strip()) >= _LEAST_BODY_CHARACTERS
    ]
    stops = [line[0] for line, _ in headings[1:]] + [len(text)]
    for (line, body), stop in zip(headings, stops, strict=False):
        start = line[0] + len(text[slice(*line)]) - len(text[slice(*line)].lstrip())
        yield start, body[0], stop


def _is_heading(line: str) -> bool:
    """A short line that starts like a title and does not end like a sentence, unless it asks."""
    return (
        len(line) <= _MOST_CHARACTERS
        and len(line.split()) <= _MOST_WORDS
        and (line[0].isupper() or line[0].isdigit())
        and line[-1] not in '.!:;,…"”’-'  # noqa: RUF001
        and _WORD.search(line) is not None
    )
