"""Segmenters for the units of the paper's baselines: chunks of 300 words, paragraphs, whole documents."""

import re
from itertools import islice, pairwise
from typing import Literal, get_args

from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit, trimmed, units_of

UnitKind = Literal["sentence", "chunk", "passage", "document"]

CHUNK_WORDS = 300  # words per chunk in the paper (section 5.2)
_WORD = re.compile(r"\S+")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class ChunkSegmenter:
    """Cuts a text into chunks of ``words`` words (at least 1) between white space, whatever the sentences."""

    def __init__(self, words: int = CHUNK_WORDS) -> None:
        if type(words) is not int or words < 1:
            raise ValueError(f"words is {words!r}; expected a whole number of at least 1")
        self.words = words
        self.name = "chunk" if words == CHUNK_WORDS else f"chunk:{words}"

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into chunks."""
        return _units(text, [word.start() for word in islice(_WORD.finditer(text), 0, None, self.words)])


class PassageSegmenter:
    """Cuts a text into paragraphs, at blank lines."""

    name = "passage"

    def segment(self, text: str) -> list[Unit]:
        """Cut ``text`` into paragraphs."""
        return _units(text, [0, *(match.end() for match in _BLANK_LINES.finditer(text))])


class DocumentSegmenter:
    """Makes one unit of a text."""

    name = "document"

    def segment(self, text: str) -> list[Unit]:
        """``text`` as one unit, unless it is white space."""
        return _units(text, [0])


def segmenter_of(unit: UnitKind | Segmenter) -> Segmenter:
    """The segmenter for a kind of unit, also "chunk:150" (words); raises ``ValueError`` for an unknown kind."""
    if not isinstance(unit, str):
        return unit
    if words := re.fullmatch(r"chunk:(\d{1,6})", unit):
        return ChunkSegmenter(int(words[1]))
    kinds: dict[str, type[Segmenter]] = {
        "sentence": SentenceSegmenter,
        "chunk": ChunkSegmenter,
        "passage": PassageSegmenter,
        "document": DocumentSegmenter,
    }
    if unit not in kinds:
        named = ", ".join([*get_args(UnitKind), "chunk:WORDS"])
        raise ValueError(f"unit is {unit!r}; expected one of {named}, or a segmenter")
    return kinds[unit]()


def _units(text: str, starts: list[int]) -> list[Unit]:
    """Units from each start to the next, without the white space around them; see `units_of`."""
    cuts = [trimmed(text, start, stop) for start, stop in pairwise([*starts, len(text)])]
    return units_of(text, [span for span in cuts if span is not None])
