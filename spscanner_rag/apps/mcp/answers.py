"""What the tools answer: passages with their places, by document."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict  # pydantic refuses Python 3.11's own

from spscanner_rag.files.documents import TextFile
from spscanner_rag.results.passages import Passage

_ID = re.compile(r"(.*)#(\d{1,9})-(\d{1,9})@([0-9a-f]{8})", re.DOTALL)


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
    """What the id of a passage says: its span, and the digest of its text."""

    path: str
    start: int
    end: int
    digest: str

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

    def is_in(self, document: TextFile) -> bool:
        """Whether the document has the passage's text at its place."""
        return _text_digest(document.text[self.start : self.end]) == self.digest


def place_of(document: TextFile, start: int, end: int) -> FoundPassage:
    """A span of a document with its id and its place."""
    passage = Passage(document.text[start:end], start, end, 0.0).within(document)
    place = FoundPassage(
        id=f"{document.path}#{start}-{end}@{_text_digest(passage.text)}",
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
    document: TextFile,
    start: int,
    end: int,
    count_tokens: Callable[[str], int],
    max_tokens: int,
) -> FoundPassage:
    """A passage, or as much of its beginning as fits, with the id of the remainder."""
    length = end - start
    while length:
        place = place_of(document, start, start + length)
        if start + length < end:
            place["rest"] = place_of(document, start + length, end)["id"]
        if count_tokens(json_of(place)) <= max_tokens:
            return place
        length //= 2
    raise ValueError(
        "max_tokens: too few for the place of a passage alone; expected more"
    )


def digest_of(*parts: str) -> str:
    """The first digits of a digest of the texts' digests.

    So different lists of texts have different ones.
    """
    digests = sha256()
    for part in parts:
        digests.update(sha256(part.encode(errors="surrogatepass")).digest())
    return digests.hexdigest()[:16]


def _text_digest(text: str) -> str:
    return digest_of(text)[:8]


def json_of(answer: Found | FoundPassage) -> str:
    """The answer as sent.

    A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    """
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace").decode()
