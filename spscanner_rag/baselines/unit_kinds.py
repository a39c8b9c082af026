"""The kinds of units that a baseline ranks, and what cuts a text into them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.spans import spans_between, trim_span
from spscanner_rag.text.units import Segmenter, Unit, units_from_spans

UnitKind = Literal["sentence", "chunk", "passage", "document"]

CHUNK_WORDS = 300  # words per chunk in the paper (section 5.2)
_BEFORE_WORDS = re.compile(r"(?<!\S)(?=\S)")
_CHUNK = re.compile(r"chunk(?::0*([1-9]\d{0,5}))?")
# at blank lines, or nowhere
_CUTS = {
    "passage": re.compile(r"\A|\n[^\S\n]*\n\s*"),
    "document": re.compile(r"\A"),
}


@dataclass(frozen=True, slots=True)
class CutSegmenter:
    """Cuts a text at the end of every match of a pattern, whatever its sentences.

    Parameters
    ----------
    name : str
        The name of the units.
    pattern : re.Pattern
        Where a text may be cut.
    every : int, default 1
        Only every so many matches are a cut.
    """

    name: str
    pattern: re.Pattern[str]
    every: int = 1

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into units without the white space around them."""
        spans = []
        for start, end in spans_between(self._cuts(text), len(text)):
            trimmed = trim_span(text, start, end)
            if trimmed is not None:
                spans.append(trimmed)
        return units_from_spans(text, spans)

    def _cuts(self, text: str) -> Iterator[int]:
        matches = self.pattern.finditer(text)
        for match in islice(matches, 0, None, self.every):
            yield match.end()


def segmenter_of(unit: UnitKind | Segmenter) -> Segmenter:
    """Return the segmenter for a kind of unit, such as "chunk:150" (words).

    ``ValueError`` for an unknown kind.

    Examples
    --------
    >>> from spscanner_rag.baselines.unit_kinds import segmenter_of
    >>> units = segmenter_of("chunk:2").segment("It rained all day.")
    >>> [unit.model_text for unit in units]
    ['It rained ', 'all day.']
    """
    if not isinstance(unit, str):
        return unit
    chunk = _CHUNK.fullmatch(unit)
    if chunk:
        words = int(chunk[1] or CHUNK_WORDS)
        name = "chunk" if words == CHUNK_WORDS else f"chunk:{words}"
        return CutSegmenter(name, _BEFORE_WORDS, words)
    if unit == "sentence":
        return SentenceSegmenter()
    if unit not in _CUTS:
        kinds = ", ".join([*get_args(UnitKind), "chunk:WORDS"])
        raise ValueError(f"unit is {unit!r}; expected one of {kinds}, or a segmenter")
    return CutSegmenter(unit, _CUTS[unit])
