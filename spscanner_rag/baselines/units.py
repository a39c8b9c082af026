"""Segmenters for the units of the paper's baselines: chunks of 300 words, paragraphs, whole documents."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit, between, trimmed, units_of

UnitKind = Literal["sentence", "chunk", "passage", "document"]

CHUNK_WORDS = 300  # words per chunk in the paper (section 5.2)
_BEFORE_WORDS = re.compile(r"(?<!\S)(?=\S)")
_CUTS = {
    "passage": re.compile(r"\A|\n[^\S\n]*\n\s*"),
    "document": re.compile(r"\A"),
}  # at blank lines, or not


@dataclass(frozen=True, slots=True)
class CutSegmenter:
    """Cuts a text where a pattern ends, whatever the sentences: at every match, or every so many."""

    name: str
    pattern: re.Pattern[str]
    every: int = 1

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text``; the units are without the white space around them."""
        starts = (match.end() for match in islice(self.pattern.finditer(text), 0, None, self.every))
        cuts = [trimmed(text, *span) for span in between(starts, len(text))]
        return units_of(text, [span for span in cuts if span is not None])


def segmenter_of(unit: UnitKind | Segmenter) -> Segmenter:
    """The segmenter for a kind of unit, also "chunk:150" (words); raises ``ValueError`` for an unknown kind."""
    if not isinstance(unit, str):
        return unit
    if words := re.fullmatch(r"chunk(?::0*([1-9]\d{0,5}))?", unit):
        number = int(words[1] or CHUNK_WORDS)
        name = "chunk" if number == CHUNK_WORDS else f"chunk:{number}"
        return CutSegmenter(name, _BEFORE_WORDS, number)
    if unit == "sentence":
        return SentenceSegmenter()
    if unit not in _CUTS:
        named = ", ".join([*get_args(UnitKind), "chunk:WORDS"])
        raise ValueError(f"unit is {unit!r}; expected one of {named}, or a segmenter")
    return CutSegmenter(unit, _CUTS[unit])
