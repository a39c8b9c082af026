"""What a search found, as JSON for an agent: passages with ids, and cursors to those that are left."""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NotRequired

from typing_extensions import TypedDict  # pydantic refuses that of Python 3.11

from spscanner_rag.files.documents import TextFile
from spscanner_rag.results.sentences import Passage

_CURSOR = re.compile(r"(\d{1,9})-([0-9a-f]{8})-([0-9a-f]{8})")


class FoundPassage(TypedDict):
    """A passage and its place; start and end count the characters of the document's text."""

    id: str
    text: str
    start: int
    end: int
    score: NotRequired[float]
    page: NotRequired[str]
    headings: NotRequired[list[str]]
    cite: NotRequired[str]
    rest: NotRequired[str]  # the id of what follows, of a passage that is longer than the answer may be


class FoundDocument(TypedDict):
    """A document, the probability that it answers, and its passages."""

    path: str
    characters: int
    answerable: NotRequired[float]
    passages: list[FoundPassage]


class Found(TypedDict):
    """The best passages by document, and the cursor of those that are left."""

    documents: list[FoundDocument]
    documents_read: int
    passages_left: int
    not_read: list[str]
    cursor: str | None


def start_of(cursor: str, bound: tuple[str, str], documents: Sequence[TextFile]) -> int:
    """Where an answer goes on; ``bound`` are the digests of question and names, and of the texts."""
    match = _CURSOR.fullmatch(cursor)
    if not cursor or (match and match.groups()[1:] == bound):
        return int(match[1]) if match else 0
    name = documents[0].path or "the text" if len(documents) == 1 else "a file of the folder"
    why = f"{name} has changed" if match and match[2] == bound[0] else "of another question or document"
    raise ValueError(f"cursor: got {cursor!r:.60}, {why}; expected that of the last answer, or none")


def place_of(document: TextFile, start: int, end: int) -> FoundPassage:
    """A stretch of a document with its id and its place."""
    own = Passage(document.text[start:end], start, end, 0.0).within(document)
    own_id = f"{document.path}#{start}-{end}@{digest_of(own.text)}"
    found = FoundPassage(id=own_id, text=own.text, start=start, end=end)
    if own.page is not None:
        found["page"] = own.page
    if own.headings:
        found["headings"] = list(own.headings)
    if own.page or own.headings:  # else it would repeat the id
        found["cite"] = own.cite()
    return found


def digest_of(*parts: str, digits: int = 8) -> str:
    """The first digits of a digest of texts: of their digests, so that none can be taken for another."""
    own = (sha256(part.encode(errors="surrogatepass")).digest() for part in parts)
    return sha256(b"".join(own)).hexdigest()[:digits]


def json_of(answer: Found | FoundPassage) -> str:
    """As it is sent; half a character, which JSON cannot hold, becomes a question mark."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode(errors="replace").decode()
