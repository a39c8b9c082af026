"""A passage, what is given to a language model, and its place in a file."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from spscanner_rag.results.excerpts import quoted_excerpt
from spscanner_rag.results.place_names import place_of_names


@dataclass(frozen=True, slots=True, repr=False)
class Passage:
    """A selected sentence, or a run of adjacent selected sentences merged into one.

    Attributes
    ----------
    text : str
        The passage, ``document[start:end]``, without the markup of a Markdown file.
    start, end : int
        Its span in the document, in characters.
    score : float
        The score of its sentence, or the highest score of its sentences.
    source : str
        The name of the file, if the document came from `spscanner_rag.files.read`; else
        "", and the following are empty too.
    page : str, optional
        The label of the page where it begins.
    headings : tuple of str
        The headings above it, the highest first.
    boxes : tuple
        In a PDF, a rectangle for each line: page number, then left, bottom, right and
        top in points from the page's lower left corner.
    place : str
        Where it begins in a file without pages, such as "slide 4"; else "".

    Examples
    --------
    >>> passage = Passage("The keeper signed it.", 40, 61, 0.9, "log.pdf", page="12")
    >>> passage.cite()
    'log.pdf, page 12'
    """

    text: str
    start: int
    end: int
    score: float
    source: str = ""
    page: str | None = None
    headings: tuple[str, ...] = ()
    boxes: tuple[tuple[int, float, float, float, float], ...] = ()
    place: str = ""

    def cite(self) -> str:
        """Where it is, for people: "report.pdf, page 12".

        Its place in the file or its headings if there is no page, or else its span.
        """
        place = self.place
        if self.page is not None:
            place = f"page {self.page}"
        elif not place and not self.headings:
            place = f"characters {self.start} to {self.end}"
        return place_of_names(self.source, place, self.headings)

    def within(self, document: "Located") -> "Passage":
        """The same passage with its place in a document."""
        page = document.page(self.start)
        place_name = ""
        if isinstance(document, WithPlaces):
            place_name = document.place_name(self.start)
        return replace(
            self,
            source=document.path,
            page=None if page is None else page.label,
            headings=document.headings(self.start),
            boxes=document.boxes(self.start, self.end),
            place=place_name,
        )

    def __repr__(self) -> str:
        return (
            f"Passage({quoted_excerpt(self.text)}, start={self.start}, end={self.end},"
            f" score={self.score:.4g})"
        )


@runtime_checkable
class Located(Protocol):
    """A document that knows the page and headings of each character.

    `spscanner_rag.files.read` returns one.
    """

    @property
    def path(self) -> str:
        """Its name."""

    def page(self, offset: int) -> Any | None:  # noqa: ANN401 - with a ``label``
        """The page that a character is on, if it has pages."""

    def headings(self, offset: int) -> tuple[str, ...]:
        """The headings above a character, the highest first."""

    def boxes(self, start: int, end: int) -> tuple[Any, ...]:
        """The rectangles of a span on its pages, if it has pages."""


@runtime_checkable
class WithPlaces(Protocol):
    """A document whose parts have names, as slides and sheets have."""

    def place_name(self, offset: int) -> str:
        """The name of the place of a character, empty without places."""


@runtime_checkable
class WithMarkup(Protocol):
    """A document that does not show all of its text."""

    def shown(self, start: int, end: int) -> str:
        """The text of a span without markup."""


def shown_text(text: str, document: object, start: int, end: int) -> str:
    """What is shown of a span of the text of a document, which may be None."""
    if isinstance(document, WithMarkup):
        return document.shown(start, end)
    return text[start:end]
