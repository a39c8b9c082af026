"""Rotates documents at a sentence end, so that the same evidence is near the beginning or near the end.

A rotation moves the sentences before a cut to the end. Only the place of the evidence changes: every sentence is
kept once, and no evidence is split.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.run import LaidOut, Layout
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked, by_document
from spscanner_rag.results.coverage import Spans, evidence_sentences
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit, units_of

JOINER = "\n\n"
"""Between the end of the document and its beginning, so that their sentences do not run together."""

PARTS = 10
"""Evidence is moved into the first or the last of this many equal parts of the text."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A text that begins at a cut: ``text[cut:] + JOINER + text[:cut]``.

    A cut at either end leaves the text unchanged; a cut outside the text raises ``ValueError``.
    """

    text: str
    cut: int

    def __post_init__(self) -> None:
        if not 0 <= self.cut <= len(self.text):
            raise ValueError(
                f"got the cut {self.cut}; expected 0 to {len(self.text)}, the length of the text"
            )

    @property
    def rotated(self) -> str:
        """The rotated text."""
        if self.cut in (0, len(self.text)):
            return self.text
        return self.text[self.cut :] + JOINER + self.text[: self.cut]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of the text in the rotated text; raises ``ValueError`` if the cut splits it."""
        if start < self.cut < end:
            raise ValueError(
                f"the cut {self.cut} splits the span [{start}, {end}]; expected a cut outside it"
            )
        shift = int(_shifts(np.array([start]), np.array([self.cut]), len(self.text))[0, 0])
        return start + shift, end + shift

    def units(self, units: Sequence[Unit]) -> list[Unit]:
        """The units of the text in the rotated text, in its order; raises ``ValueError`` if the cut splits one."""
        return units_of(self.rotated, sorted(self.span(unit.start, unit.end) for unit in units))


def cuts_for(
    units: Spans, evidence: Sequence[tuple[int, int]], characters: int, parts: int = PARTS
) -> tuple[int, int] | None:
    """Two cuts of a text, one that moves its evidence into the first part, one into the last.

    A cut is the start of a unit and splits no evidence. All evidence sentences must lie in the part; of several
    possible cuts, the one that brings their middle nearest to the middle of the part is taken.

    Parameters
    ----------
    units : Spans
        The sentences of the text, disjoint and in order.
    evidence : sequence of (start, end)
        Character spans.
    characters : int
        Length of the text.
    parts : int, default 10
        Number of equal parts.

    Returns
    -------
    tuple of (int, int) or None
        None if one of the two is impossible, because the evidence spreads over more than one part.

    Raises
    ------
    ValueError
        If no sentence overlaps the evidence, or there are fewer than two parts.
    """
    if parts < 2:
        raise ValueError(f"got {parts} parts; expected at least 2")
    sentences = evidence_sentences(units, evidence)
    if not len(sentences.starts):
        raise ValueError("no sentence overlaps the evidence; expected at least one")
    cuts = units.starts
    for start, end in evidence:
        cuts = cuts[(cuts <= start) | (cuts >= end)]
    if not len(cuts):
        return None
    shifts = _shifts(sentences.starts, cuts, characters)
    low = (sentences.starts + shifts).min(axis=1)
    high = (sentences.ends + shifts).max(axis=1)
    totals = characters + len(JOINER) * (cuts > 0)
    first = _nearest(parts * high <= totals, np.abs(parts * (low + high) - totals))
    last = _nearest(
        parts * low >= (parts - 1) * totals, np.abs(parts * (low + high) - (2 * parts - 1) * totals)
    )
    return None if first is None or last is None else (int(cuts[first]), int(cuts[last]))


def rotate(document: Document, question: Question, sentences: Sequence[Unit], cut: int) -> LaidOut:
    """Rotate a document, its sentences and a question's evidence; raises ``ValueError`` if the cut splits one."""
    rotation = Rotation(document.text, cut)
    moved = replace(question, evidence=tuple(rotation.span(*span) for span in question.evidence))
    return LaidOut(replace(document, text=rotation.rotated), rotation.units(sentences), [moved])


def rotatable(questions: Mapping[str, Sequence[Asked]]) -> dict[str, list[Asked]]:
    """The questions, by source, that both rotations of their document allow; ``ValueError`` for none."""
    segmenter = SentenceSegmenter()
    found = {}
    for source, asked in questions.items():
        sentences = {
            id(document): Spans.of(segmenter.segment(document.text)) for document, _ in by_document(asked)
        }
        found[source] = [pair for pair in asked if _cuts(*pair, sentences[id(pair[0])]) is not None]
    if not any(found.values()):
        raise ValueError(
            f"none of {sum(map(len, questions.values()))} questions has all of its evidence within a tenth of "
            "its document; expected at least one: give other documents, or leave out --rotate"
        )
    return {source: kept for source, kept in found.items() if kept}


def _lay(
    document: Document, questions: Sequence[Question], sentences: Sequence[Unit], *, last: bool
) -> Iterator[LaidOut]:
    spans = Spans.of(sentences)
    for question in questions:
        cuts = _cuts(document, question, spans)
        if cuts is not None:
            yield rotate(document, question, sentences, cuts[last])


LAYOUTS: Mapping[str, Layout] = {
    "first tenth": partial(_lay, last=False),
    "last tenth": partial(_lay, last=True),
}
"""Layouts for `run_setting` by variant: a rotated document for each question, with its evidence in that tenth."""


def _cuts(document: Document, question: Question, sentences: Spans) -> tuple[int, int] | None:
    if not len(evidence_sentences(sentences, question.evidence).starts):
        return None  # evidence of white space only
    return cuts_for(sentences, question.evidence, len(document.text))


def _shifts(starts: NDArray[np.int64], cuts: NDArray[np.int64], characters: int) -> NDArray[np.int64]:
    """How far each cut moves each start: (cuts, starts)."""
    cuts = cuts[:, None]
    behind = np.where(cuts < characters, characters - cuts + len(JOINER), 0)
    moved: NDArray[np.int64] = np.where((starts >= cuts) | (cuts == 0), -cuts, behind)
    return moved


def _nearest(possible: NDArray[np.bool_], distances: NDArray[np.int64]) -> int | None:
    places = np.flatnonzero(possible)
    return int(places[np.argmin(distances[places])]) if len(places) else None
