"""Numbers of a file of examples: distances, positions, labels, lengths."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spscanner_rag.lab.evidence.questions import DataError
from spscanner_rag.lab.synthesis.sources import json_objects

BINS = 10


def example_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file of examples; raises `DataError` for one that is none, with its number."""
    expected = "a document with its questions"
    for number, line, record in json_objects(path, expected):
        try:
            text, questions = record["text"], record["questions"]
            for question in questions:
                if not all(0 <= start < end <= len(text) for start, end in question.get("evidence", [])):
                    raise ValueError("evidence outside the text")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path}, line {number}: expected {expected}, got {line[:60]!r} ({error!r:.60})"
            ) from None
        yield record


@dataclass(slots=True)
class ExampleStatistics:
    """Counts examples one at a time; the texts are not kept."""

    examples: int = 0
    by_size: Counter[int] = field(default_factory=Counter)  # examples of each size of sub-document, in tokens
    distances: list[int] = field(default_factory=list)  # units between the two sides; not for "chunk"
    apart: list[float] = field(default_factory=list)  # the same as a share of the characters
    positions: Counter[int] = field(default_factory=Counter)  # labelled spans by the tenth where they begin
    relevant: list[int] = field(default_factory=list)  # labelled units of each side,
    shown: list[int] = field(default_factory=list)  # and how many the model saw there
    lengths: list[int] = field(default_factory=list)  # characters of the sub-documents
    evidence_share: list[float] = field(default_factory=list)  # of a sub-document's characters

    def add(self, line: Mapping[str, Any]) -> None:
        """Count an example: a line of a question file that `spscanner synthesize` wrote."""
        made, length = line.get("synthesis", {}), len(line["text"])
        self.examples += 1
        self.lengths.append(length)
        if "size" in made:
            self.by_size[made["size"]] += 1
        if "distance" in made:
            self.distances.append(made["distance"])
        for relevant, shown in made.get("labels", ()):
            self.relevant.append(relevant)
            self.shown.append(shown)
        for question in line["questions"]:
            spans = question.get("evidence", ())
            if not spans:
                continue
            self.apart.append((max(span[1] for span in spans) - min(span[0] for span in spans)) / length)
            self.evidence_share.append(sum(end - start for start, end in spans) / length)
            self.positions.update(min(BINS - 1, BINS * start // length) for start, _ in spans)

    def rows(self) -> list[tuple[str, str]]:
        """Return the numbers as names and values to show."""
        shown = [("examples", f"{self.examples:,}")]
        shown += [(f"of {size:,} tokens", f"{count:,}") for size, count in sorted(self.by_size.items())]
        shown += [
            ("units between the two sides", _quantiles(self.distances)),
            ("from the first labelled character to the last, of the sub-document", _quantiles(self.apart, 2)),
            ("labelled units of a side", _quantiles(self.relevant)),
            ("share of the units shown that are labelled", _share(self.relevant, self.shown)),
            ("share of the sub-document that is labelled", _quantiles(self.evidence_share, 3)),
            ("characters of a sub-document", _quantiles(self.lengths)),
        ]
        return [(name, value) for name, value in shown if value]

    def histograms(self) -> dict[str, list[tuple[str, int]]]:
        """Counts with the names of their ranges, by title."""
        tenths = [
            (f"{10 * number} to {10 * number + 10} %", self.positions[number]) for number in range(BINS)
        ]
        return {
            "Where labelled sentences begin, by tenths of the sub-document": tenths,
            "Units between the two sides": histogram(self.distances),
            "Characters of the sub-documents": histogram(self.lengths),
        }


def statistics_of(lines: Iterable[Mapping[str, Any]]) -> ExampleStatistics:
    """Return the numbers of all lines."""
    found = ExampleStatistics()
    for line in lines:
        found.add(line)
    return found


def histogram(values: Iterable[float], bins: int = BINS) -> list[tuple[str, int]]:
    """Counts of equally wide ranges, with the names of the ranges; empty for no values."""
    numbers = np.array(list(values), np.float64)
    if not len(numbers):
        return []
    counts, edges = np.histogram(numbers, bins=bins)
    names = [f"{edges[n]:,.0f} to {edges[n + 1]:,.0f}" for n in range(bins)]
    return list(zip(names, counts.tolist(), strict=True))


def _quantiles(values: Iterable[float], digits: int = 0) -> str:
    numbers = np.array(list(values), np.float64)
    if not len(numbers):
        return ""
    low, middle, high = np.quantile(numbers, [0.1, 0.5, 0.9])
    return f"median {middle:,.{digits}f}, 10 % below {low:,.{digits}f}, 10 % above {high:,.{digits}f}"


def _share(part: list[int], whole: list[int]) -> str:
    return f"{sum(part) / sum(whole):.1%}" if sum(whole) else ""
