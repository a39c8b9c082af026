"""What the tools answer: passages with their places, by document."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict  # pydantic refuses Python 3.11's own

from spscanner_rag.apps.mcp.identity import IdentifiedText
from spscanner_rag.results.passages import Passage
from spscanner_rag.text.framing import inert_json

_ID = re.compile(r"(.*)#(\d{1,9})-(\d{1,9})@([\w-]{8,22})", re.DOTALL | re.ASCII)


class FoundPassage(TypedDict):
    """A passage and its place.

    start and end count characters of the document's text.
    """

    id: str
    text: str
    start: int
    end: int
    score: NotRequired[float]
    page: NotRequired[str]
    place: NotRequired[str]
    headings: NotRequired[list[str]]
    cite: NotRequired[str]
    # the id of the remaining text, if the passage is too long for the answer
    rest: NotRequired[str]


class FoundDocument(TypedDict):
    """A document, the probability that it answers the question, and its passages."""

    path: str
    characters: int
    answerable: NotRequired[float]
    passages: list[FoundPassage]


class Found(TypedDict):
    """The best passages by document, and a cursor for the remaining ones."""

    documents: list[FoundDocument]
    documents_read: int
    passages_left: int
    not_read: list[str]
    cursor: str | None


class PassageId(NamedTuple):
    """What the id of a passage says: its span, and the mark of the whole text."""

    path: str
    start: int
    end: int
    mark: str

    @classmethod
    def parse(cls, text: str) -> "PassageId":
        """Read an id.

        Raises
        ------
        ValueError
            If no answer has such an id.
        """
        match = _ID.fullmatch(text)
        if match is None:
            raise ValueError(
                f"id: got {text!r:.80}; expected the id of a passage that was found"
            )
        return cls(match[1], int(match[2]), int(match[3]), match[4])

    def is_in(self, text: IdentifiedText) -> bool:
        """Whether a text is the one that the passage was found in."""
        is_inside = self.start < self.end <= len(text.document.text)
        return is_inside and self.mark == text.mark


def place_of(text: IdentifiedText, start: int, end: int) -> FoundPassage:
    """A span of a document with its id and its place."""
    document = text.document
    passage = Passage(document.shown(start, end), start, end, 0.0).within(document)
    place = FoundPassage(
        id=f"{document.path}#{start}-{end}@{text.mark}",
        text=passage.text,
        start=start,
        end=end,
    )
    if passage.page is not None:
        place["page"] = passage.page
    if passage.place:
        place["place"] = passage.place
    if passage.headings:
        place["headings"] = list(passage.headings)
    if passage.page or passage.place or passage.headings:  # else it would repeat the id
        place["cite"] = passage.cite()
    return place


def cut_place(
    text: IdentifiedText,
    start: int,
    end: int,
    count_tokens: Callable[[str], int],
    max_tokens: int,
) -> FoundPassage:
    """A passage, or as much of its beginning as fits, with the id of the remainder."""
    length = end - start
    while length:
        place = place_of(text, start, start + length)
        if start + length < end:
            place["rest"] = place_of(text, start + length, end)["id"]
        if count_tokens(json_of(place)) <= max_tokens:
            return place
        length //= 2
    raise ValueError(
        "max_tokens: too few for the place of a passage alone; expected more"
    )


def digest_of(*parts: str) -> str:
    """A digest of the texts' digests, so that different lists have different ones."""
    digests = sha256()
    for part in parts:
        digests.update(sha256(part.encode(errors="surrogatepass")).digest())
    return digests.hexdigest()


def json_of(answer: Found | FoundPassage) -> str:
    """The answer as sent, in which no text acts on what shows it.

    A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    """
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return inert_json(text.encode(errors="replace").decode())
