"""The parts of a result: a scored sentence, a passage of selected sentences, and the units of offsets."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.escaping import one_line

Offsets = Literal["characters", "utf16", "bytes"]


@dataclass(frozen=True, slots=True, repr=False)
class ScoredSentence:
    """One sentence of the document.

    Attributes
    ----------
    text : str
        The sentence, ``document[start:end]``.
    start, end : int
        Its span in the document, in characters, without the white space around it.
    logit : float
        The scanner's output, float32 as a Python float.
    score : float
        Sigmoid of the logit, from 0 to 1.
    """

    text: str
    start: int
    end: int
    logit: float
    score: float

    def __repr__(self) -> str:
        return (
            f"ScoredSentence({shortened(self.text)}, start={self.start},"
            f" end={self.end}, logit={self.logit:.4g}, score={self.score:.4g})"
        )


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """A selected sentence, or a run of adjacent selected sentences merged into one.

    Attributes
    ----------
    text : str
        The passage, ``document[start:end]``.
    start, end : int
        Its span in the document, in characters.
    score : float
        The score of its sentence, or the highest score of its sentences.
    source, page, headings, boxes
        Where it begins, if the document came from `spscanner_rag.files.read`: name of
        the file, label of the page and the headings above, the highest first; else "",
        None and (). In a PDF, ``boxes`` has a rectangle for each line: page number,
        then left, bottom, right and top in points from the page's lower left corner.
    """

    text: str
    start: int
    end: int
    score: float
    source: str = ""
    page: str | None = None
    headings: tuple[str, ...] = ()
    boxes: tuple[tuple[int, float, float, float, float], ...] = ()

    def cite(self) -> str:
        """Where it is, for people: "report.pdf, page 12".

        Its headings if there is no page, or else its span.
        """
        place = f"characters {self.start} to {self.end}"
        if self.page is not None:
            place = f"page {self.page}"
        elif self.headings:
            place = " > ".join(self.headings)
        return one_line(", ".join(filter(None, (self.source, place))))

    def within(self, document: "Located") -> "Passage":
        """The same passage with its place in a document."""
        page = document.page(self.start)
        label = None if page is None else page.label
        headings, boxes = (
            document.headings(self.start),
            document.boxes(self.start, self.end),
        )
        return replace(
            self, source=document.path, page=label, headings=headings, boxes=boxes
        )

    def __repr__(self) -> str:
        return (
            f"Passage({shortened(self.text)}, start={self.start}, end={self.end},"
            f" score={self.score:.4g})"
        )


@runtime_checkable
class Located(Protocol):
    """A document that knows the page and headings of each character, as `spscanner_rag.files.read` returns it."""

    @property
    def path(self) -> str:
        """Its name."""

    def page(self, offset: int) -> Any | None:  # noqa: ANN401 - with a ``label``
        """The page that a character is on, if it has pages."""

    def headings(self, offset: int) -> tuple[str, ...]:
        """The headings above a character, the highest first."""

    def boxes(self, start: int, end: int) -> tuple[Any, ...]:
        """The rectangles of a span on its pages, if it has pages."""


def shortened(text: str, characters: int = 60) -> str:
    """The text, quoted, with at most ``characters`` characters."""
    return repr(shortened_text(text, characters))


def shortened_text(text: str, characters: int) -> str:
    """The text with at most ``characters`` characters."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def check_offsets(offsets: Any, name: str = "offsets") -> Offsets:  # noqa: ANN401 - checked here
    """Return the unit of offsets; ``ValueError`` for an unknown one."""
    if offsets not in get_args(Offsets):
        raise ValueError(
            f"{name}: got {offsets!r}; expected one of {', '.join(get_args(Offsets))}"
        )
    known: Offsets = offsets
    return known


def counted(
    text: str, offsets: NDArray[np.integer[Any]], unit: Offsets
) -> NDArray[np.int64]:
    """Convert offsets in characters to offsets in UTF-16 units, or in bytes of UTF-8: (n,).

    A lone surrogate, which UTF-8 cannot encode, counts as the three bytes of U+FFFD,
    which replaces it.
    """
    check_offsets(unit)
    if unit == "characters" or text.isascii():
        return offsets.astype(np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    larger = (0xFFFF,) if unit == "utf16" else (0x7F, 0x7FF, 0xFFFF)
    widths = 1 + sum((codes > code).astype(np.int64) for code in larger)
    return np.asarray(np.concatenate([[0], np.cumsum(widths)])[offsets], np.int64)
