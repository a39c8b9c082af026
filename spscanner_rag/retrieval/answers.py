"""The results for a question: sentences, or the pieces that contain them, as objects of a framework."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from spscanner_rag.retrieval.held import Item, ReadText
from spscanner_rag.retrieval.joined_text import JoinedText, Place, Placed
from spscanner_rag.retrieval.pieces import page_label
from spscanner_rag.text.word_boxes import WORDS_KEY, Box, boxes_of, unpacked

Result = TypeVar("Result")

_RANDOM_ID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
    re.IGNORECASE,
)

ReturnNodes = Literal["sentence", "node", "pruned"]
"""What a framework class returns: sentences, the pieces that contain them, or these
pieces pruned to them."""

# replaces the text left out between two kept sentences, as in the paper's contexts
GAP = "\n"
Span = tuple[int, int]

ID_KEY = "spscanner_id"  # key of the id of a sentence, the same in every run
SCORE_KEYS = (
    "spscanner_logit",
    "spscanner_document_score",
    "spscanner_answerable",
    "spscanner_retrieval_score",
)
"""Keys whose values depend on the question."""


class Hit(NamedTuple):
    """A selected passage and where it comes from."""

    text: str
    score: float  # the score of its best sentence: the sigmoid of the logit
    logit: float
    joined: int  # index of its text
    place: Place
    start: int  # its span in that text
    end: int
    document_score: float  # the score of the best sentence of its text, selected or not
    answerable: float | None = (
        None  # the probability that its text answers, if the scorer reports it
    )


def result_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of metadata for a result, without the places of the page's words."""
    return copied_metadata(
        {key: value for key, value in metadata.items() if key != WORDS_KEY}
    )


class Answer(ABC, Generic[Item, Result]):
    """The results of one question, which each framework's adapter makes in the framework's own classes."""

    pages: ClassVar[tuple[str, ...]]  # metadata keys for `page_label`
    unknown: ClassVar[int | None] = None  # the value of an unknown offset

    def __init__(self, keep_retrieval_score: bool) -> None:
        self.found: list[Result] = []
        self.keep_retrieval_score = keep_retrieval_score

    @abstractmethod
    def add_sentence(self, hit: Hit, text: ReadText[Item]) -> None:
        """Add a selected sentence of a text."""

    @abstractmethod
    def add_piece(
        self,
        best: Hit,
        text: ReadText[Item],
        piece: int,
        content: str,
        saved: Mapping[str, float],
    ) -> None:
        """Add a piece with its best sentence's scores: whole, or pruned to ``content`` with metadata ``saved``."""

    @abstractmethod
    def content(self, of: Item | Result) -> str:
        """Return the text of an item or a result, without metadata."""

    def sent(self, result: Result) -> str:
        """Return the text of a result that the framework sends to a language model.

        ``max_tokens`` counts it.
        """
        return self.content(result)

    @abstractmethod
    def metadata_of(self, item: Item) -> Mapping[str, Any]:
        """Return the metadata of an item."""

    @abstractmethod
    def own_score(self, item: Item) -> float | None:
        """Return the score that an item came with, if any."""

    def scores(self, hit: Hit, text: ReadText[Item], piece: int) -> dict[str, Any]:
        """Return the scores of a result whose best sentence is the hit."""
        retrieval_score = (
            self.own_score(text.items[piece]) if text.score is None else text.score
        )
        return {
            "score": hit.score,
            "logit": hit.logit,
            "document_score": hit.document_score,
            "retrieval_score": retrieval_score if self.keep_retrieval_score else None,
            "answerable": hit.answerable,
        }

    def metadata(self, hit: Hit, text: ReadText[Item], piece: int) -> dict[str, Any]:
        """Return a copy of an item's metadata with those scores of a result that are not None."""
        scores = self.scores(hit, text, piece).items()
        own = {
            f"spscanner_{name}": value
            for name, value in scores
            if name != "score" and value is not None
        }
        return result_metadata(self.metadata_of(text.items[piece])) | own

    def place(self, hit: Hit, text: ReadText[Item]) -> dict[str, Any]:
        """Return metadata about a sentence's rectangles, and about its last page if it runs over to one."""
        places = list(text.joined.places(hit.start, hit.end))
        given = [self.metadata_of(text.items[place.piece]) for place in places]
        boxes = [
            list(box)
            for own, at in zip(given, places, strict=True)
            for box in _boxes(own, at)
        ]
        found: dict[str, Any] = {"spscanner_boxes": boxes} if boxes else {}
        last = places[-1]
        if last.source == hit.place.source:
            return found
        return found | {
            "spscanner_continued_page": page_label(given[-1], self.pages),
            "spscanner_continued_start": (
                self.unknown if last.source_start is None else last.source_start
            ),
            "spscanner_continued_end": (
                self.unknown if last.source_end is None else last.source_end
            ),
        }


def _boxes(metadata: Mapping[str, Any], place: Place) -> tuple[Box, ...]:
    words = metadata.get(WORDS_KEY)
    known = unpacked(words) if isinstance(words, str) else None
    if known is None or place.source_start is None or place.source_end is None:
        return ()
    page, own = known
    return boxes_of(own, place.source_start, place.source_end, lambda _: page)


@dataclass
class KeptPiece:
    """A piece that contains selected sentences."""

    joined: int  # index of the text that contains it
    piece: int  # its own index, in the order given
    best: Hit  # its best sentence
    spans: list[Span] = field(
        default_factory=list
    )  # what pruning keeps, in the joined text, in order


def kept_pieces(texts: Sequence[JoinedText], hits: Sequence[Hit]) -> list[KeptPiece]:
    """The smallest pieces that contain the hits, or all that they overlap, by first hit; no text is kept twice."""
    kept: dict[tuple[int, int], KeptPiece] = {}
    for hit in hits:
        for number, span in _owners(texts[hit.joined], hit.start, hit.end):
            piece = kept.setdefault(
                (hit.joined, number), KeptPiece(hit.joined, number, hit)
            )
            if piece.best.logit < hit.logit:
                piece.best = hit
            if span is not None:
                piece.spans.append(span)
    for piece in kept.values():
        piece.spans.sort()
    return list(kept.values())


def _owners(
    joined: JoinedText, start: int, end: int
) -> Iterator[tuple[int, Span | None]]:
    """The pieces of a span, each with the part of the span that it keeps, or None."""
    touching = list(joined.touching(start, end))
    holders: list[
        Placed
    ] = []  # pieces with the whole span, except those that contain another such piece
    for one in sorted(
        touching, key=lambda placed: (placed.end - placed.start, placed.number)
    ):
        if one.holds(start, end) and not any(
            one.holds(other.start, other.end) for other in holders
        ):
            holders.append(one)
    if holders:
        holders.sort()
        yield holders[0].number, (start, end)
        yield from ((placed.number, None) for placed in holders[1:])
        return
    for placed in touching:
        part = max(start, placed.start), min(end, placed.end)
        if part[0] < part[1] and joined.text[slice(*part)].strip():
            yield placed.number, part
            start = part[1]


def pruned_text(text: str, joined: JoinedText, kept: KeptPiece) -> str:
    """A piece's text pruned to the kept parts.

    White space between neighbours stays, other text is ``GAP``.
    """
    placed = next(p for p in joined.placed if p.number == kept.piece)
    pruned, end_before = "", 0
    for span in kept.spans:
        start, end = _in_piece(text, joined.text, placed, *span)
        if pruned:
            between = text[end_before:start]
            pruned += GAP if between.strip() else between
        pruned += text[start:end]
        end_before = end
    return pruned


def reduction_metadata(
    text: str, pruned: str, count_tokens: Callable[[str], int] | None
) -> dict[str, float]:
    """The share of a piece's characters that pruning saves, from 0 to 1, and of its tokens if they are counted."""
    counters = {"character": len, "token": count_tokens}
    return {
        f"spscanner_{name}_reduction": max(0.0, 1 - count(pruned) / max(count(text), 1))
        for name, count in counters.items()
        if count is not None
    }


def _in_piece(text: str, joined: str, placed: Placed, start: int, end: int) -> Span:
    """A span of the joined text in the text of the piece."""
    if placed.exact:
        shift = placed.offset - placed.start
        return start + shift, end + shift
    # The white space differs between the two, so only the other characters are counted.
    before = placed.offset + len("".join(joined[placed.start : start].split()))
    inside = len("".join(joined[start:end].split()))
    places = [
        number for number, character in enumerate(text) if not character.isspace()
    ]
    return places[before], places[before + inside - 1] + 1


def is_random_id(name: str) -> bool:
    """True for a UUID version 4 (RFC 9562), which frameworks and stores give, new in each run, without an id."""
    return _RANDOM_ID.fullmatch(name) is not None


def copied_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of metadata; a shallow one if a value cannot be copied."""
    try:
        return deepcopy(dict(metadata))
    except Exception:  # a value such as a lock
        return dict(metadata)
