"""`Verification`, what a check of an answer returns: its statements with places."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from spscanner_rag.apps.verifying.differences import Difference
from spscanner_rag.results.passages import Passage
from spscanner_rag.text.escaping import one_line

Status = Literal["supported", "altered", "elsewhere", "not found"]

MEANINGS: Final[dict[Status, str]] = {
    "supported": "found where it is cited, or anywhere if nothing is cited",
    "altered": "a quote is found with other words",
    "elsewhere": "found in another document, or on another page, than is cited",
    "not found": "found nowhere in the documents",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement, or what is likest to it, stands.

    Attributes
    ----------
    document : int
        The index of the document among those given.
    passage : Passage
        Its text and span, with the page, headings and boxes that the document knows.
    """

    document: int
    passage: Passage


@dataclass(frozen=True, slots=True)
class Statement:
    """A quote or a claim of an answer, checked.

    Attributes
    ----------
    kind : {"quote", "claim"}
        A quote stands in quotation marks or in a block quote; a claim is a sentence.
    text : str
        Its words.
    start, end : int
        Its span in the answer, in characters.
    status : str
        "supported", "altered" (quotes only), "elsewhere" or "not found".
    score : float
        For a claim, the probability that the documents support it; for a quote, the
        share of its words that are as in the document; 0 to 1.
    differences : tuple of Difference
        What a quote says otherwise. "editorial" and "typography" alter nothing.
    places : tuple of Place
        For a quote all its places, for a claim the likeliest sentences first.
    cited : tuple of str
        What the answer cites for it, as written.
    """

    kind: Literal["quote", "claim"]
    text: str
    start: int
    end: int
    status: Status
    score: float
    differences: tuple[Difference, ...] = ()
    places: tuple[Place, ...] = ()
    cited: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_lines_of(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        differences = []
        for difference in self.differences:
            differences.append(
                {
                    "kind": difference.kind,
                    "quoted": difference.quoted,
                    "source": difference.source,
                }
            )
        return {
            "kind": self.kind,
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "status": self.status,
            "score": round(self.score, 4),
            "differences": differences,
            "places": [_place_as_dictionary(place) for place in self.places],
            "cited": list(self.cited),
        }


def _place_as_dictionary(place: Place) -> dict[str, Any]:
    passage = place.passage
    content: dict[str, Any] = {
        "document": place.document,
        "cite": passage.cite(),
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
    }
    if passage.page is not None:
        content["page"] = passage.page
    if passage.boxes:
        content["boxes"] = [list(box) for box in passage.boxes]
    return content


@dataclass(frozen=True, slots=True)
class Verification:
    """The statements of an answer, checked against documents.

    Attributes
    ----------
    answer : str
        The text that was checked.
    statements : tuple of Statement
        Quotes and claims, in the order of the answer.
    documents : tuple of str
        The documents' names.
    notes : tuple of str
        What could not be checked, and why.

    Examples
    --------
    >>> statement = Statement("quote", "it sank", 0, 7, "not found", 0.0)
    >>> print(Verification("it sank", (statement,), ("log.txt",)))
    not found  quote  "it sank"
    """

    answer: str
    statements: tuple[Statement, ...]
    documents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_supported(self) -> bool:
        """Whether there are statements, and every one is supported."""
        statuses = {statement.status for statement in self.statements}
        return statuses == {"supported"}

    def with_status(self, *statuses: Status) -> tuple[Statement, ...]:
        """The statements with one of some statuses."""
        unknown = set(statuses) - set(MEANINGS)
        if unknown:
            raise ValueError(
                f"status: got {sorted(unknown)}; expected some of {', '.join(MEANINGS)}"
            )
        return tuple(
            statement for statement in self.statements if statement.status in statuses
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the documents' texts, for JSON."""
        return {
            "is_supported": self.is_supported,
            "statements": [statement.to_dict() for statement in self.statements],
            "documents": list(self.documents),
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = None) -> str:
        """:meth:`to_dict` as JSON in ASCII."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=True)

    def __str__(self) -> str:
        lines = [*map(str, self.statements)]
        for note in self.notes:
            lines.append(one_line(f"note: {note}"))
        return "\n".join(lines)


def _lines_of(statement: Statement) -> Sequence[str]:
    """Its status and words, then what it cites, what differs, and where it is."""
    text = one_line(statement.text)
    if statement.kind == "quote":
        text = f'"{text}"'
    lines = [f"{statement.status:<9}  {statement.kind}  {text}"]
    if statement.cited:
        lines.append(_under("cited: " + "; ".join(statement.cited)))
    for difference in statement.differences:
        lines.append(_under(str(difference)))
    if statement.places:
        passage = statement.places[0].passage
        lines.append(_under(f"{passage.cite()}: {passage.text}"))
    return lines


def _under(text: str) -> str:
    return f"           {one_line(text)}"
