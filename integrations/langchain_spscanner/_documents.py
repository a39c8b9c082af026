"""LangChain documents as pieces to read: their ids, what they were cut from, which are read as one text."""

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from typing_extensions import override

from spscanner_rag.retrieval import (
    ID_KEY,
    SCORE_KEYS,
    Answer,
    Hit,
    Host,
    Piece,
    ReadText,
    copied_metadata,
    is_random_id,
    join_pieces,
    page_number,
    share_text,
)

SCORE_KEY = "relevance_score"
ALL_SCORE_KEYS = frozenset(
    (SCORE_KEY, *SCORE_KEYS)
)  # metadata keys whose values depend on the question
_SCORES = (
    SCORE_KEY,
    "score",
)  # may have the score of an earlier stage; the first one present counts
_PAGES = ("page", "page_number", "page_label")

# Keys whose values differ between the chunks of one document: scores, ids in a store,
# and offsets.
_OF_THE_STORE = ALL_SCORE_KEYS.union(
    _SCORES, ("_id", "_collection_name", "chunk_id", "pk")
)
_OF_A_CHUNK = _OF_THE_STORE.union(("start_index", "end_index", "chunk_index"))


def start_of(document: Document) -> int | None:
    """Offset of a chunk in the document it was cut from, below 0 if unknown.

    None for a whole document.
    """
    start = _number(document.metadata.get("start_index"))
    return int(start) if start is not None and start == int(start) else None


def score_of(document: Document) -> float | None:
    """The score of an earlier stage, if any."""
    scores = (_number(document.metadata.get(name)) for name in _SCORES)
    return next((score for score in scores if score is not None), None)


def _number(value: object) -> float | None:
    # Accepts floats for integers, because some stores keep every number as a float.
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not math.isfinite(value)
    ):
        return None
    return float(value)


def parent_name(document: Document) -> str:
    """A digest that a document shares with all of its chunks, since splitters copy the metadata."""
    own = {
        key: value for key, value in document.metadata.items() if key not in _OF_A_CHUNK
    }
    return digest(
        {key: value for key, value in own.items() if not key.startswith("spscanner_")}
    )


def group_of(document: Document, document_key: str | None) -> str | None:
    """A string that is equal for documents with equal metadata under the key.

    None without a value.
    """
    value = None if document_key is None else document.metadata.get(document_key)
    return None if value is None else canonical(value)


def own_name(document: Document) -> str:
    """The document's id, or a digest of its text and metadata."""
    return document.id or _content_name(document)


def stable_name(document: Document) -> str:
    """A name that is the same in every run and store: `own_name`, or a digest if the id is random."""
    return (
        _content_name(document)
        if document.id and is_random_id(document.id)
        else own_name(document)
    )


def _content_name(document: Document) -> str:
    """A digest of text and metadata, without what a store or a search adds."""
    metadata = {
        key: value
        for key, value in document.metadata.items()
        if key not in _OF_THE_STORE
    }
    return digest((document.page_content, metadata))


def digest(value: object) -> str:
    """A hash that is the same for equal values in every process."""
    return hashlib.sha256(
        canonical(value).encode("utf-8", "surrogatepass")
    ).hexdigest()[:24]


def canonical(value: object) -> str:
    """A string that is equal for equal values, whatever the order of keys."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ",".join(
                sorted(f"{canonical(k)}:{canonical(v)}" for k, v in value.items())
            )
            + "}"
        )
    if isinstance(value, list | tuple):  # stores that keep JSON return tuples as lists
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, set | frozenset):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    if (
        isinstance(value, float) and value.is_integer()
    ):  # some stores keep every number as a float
        return repr(int(value))
    if type(value).__repr__ is object.__repr__:
        return type(
            value
        ).__qualname__  # its repr contains an address, which differs between copies
    return repr(value)


def own_copies(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Independent copies of documents, each with a unique id; duplicates are dropped."""
    own: dict[str, Document] = {}
    for document in documents:
        require_document(document, "documents")
        name = own_name(document)
        known = own.get(name)
        if known is None:
            own[name] = Document(
                page_content=document.page_content,
                metadata=copied_metadata(document.metadata),
                id=name,
            )
        elif _content_name(known) != _content_name(document):
            raise ValueError(
                f"documents: got two different documents with the id {name!r}; expected"
                " a different id for each, or None to make one from its text and"
                " metadata"
            )
    return tuple(own.values())


def require_document(document: object, where: str) -> None:
    """Raise ``TypeError`` for anything but a Document."""
    if not isinstance(document, Document):
        got = type(document).__name__
        if hasattr(document, "get_content"):
            got = (
                "a LlamaIndex node (convert it: Document(it.get_content(),"
                " metadata=it.metadata))"
            )
        raise TypeError(
            f"{where}: got {got}; expected langchain_core.documents.Document objects"
        )


def read(
    documents: Sequence[Document],
    document_key: str | None,
    wholes: "Wholes | None" = None,
    *,
    complete: bool = False,
) -> list[ReadText[Document]]:
    """Join documents to texts.

    Those with the same value under ``document_key`` become one.

    A document with an integer ``start_index`` is a chunk; so are those with a value
    under the key, equal metadata and overlapping texts. A chunk's document is read
    instead if ``wholes`` has it. ``complete``: all others are whole, so pages may
    continue each other. A piece's ``source[1]`` names the document that its offsets
    refer to.
    """
    of_parent: dict[str, list[str]] = {}
    for document in documents:
        require_document(document, "documents")
        if group_of(document, document_key) is not None:
            of_parent.setdefault(parent_name(document), []).append(
                document.page_content
            )
    cut_up = {parent for parent, texts in of_parent.items() if share_text(texts)}
    sources: dict[Hashable, str] = {}
    pieces: list[Piece] = []
    for number, document in enumerate(documents):
        start, group = start_of(document), group_of(document, document_key)
        held = wholes.holding(document) if wholes else []
        source: Hashable
        whole = False
        if wholes and len(held) == 1:
            given = wholes.documents[held[0]]
            source = ("given", stable_name(given), own_name(given))
            sources[source] = given.page_content
        elif start is not None or (
            cut_up and group is not None and parent_name(document) in cut_up
        ):
            source = ("parent", parent_name(document))
        else:
            start, whole = 0, True
            # Several texts may have the same id.
            source = ("whole", stable_name(document), document.page_content)
        position = page_number(document.metadata, _PAGES)
        pieces.append(
            Piece(
                text=document.page_content,
                key=str(number),
                source=source,
                start=start,
                group=group,
                position=position,
                page=position is not None and group is not None,
                last=whole and complete,
            )
        )
    return [ReadText(joined, documents) for joined in join_pieces(pieces, sources)]


class Wholes:
    """Finds the document that has a chunk's text and was its source: by id, metadata or ``document_key``."""

    def __init__(self, documents: Sequence[Document], document_key: str | None) -> None:
        self.documents = documents
        self.document_key = document_key
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._squeezed: dict[int, str] = {}
        for number, document in enumerate(documents):
            for name in self._names(document):
                self._numbers.setdefault(name, []).append(number)

    def holding(self, chunk: Document) -> list[int]:
        """Indices of the documents that the chunk may be cut from: several if ambiguous, none if unknown."""
        for name in self._names(chunk):
            found = self._with_text(self._numbers.get(name, ()), chunk.page_content)
            if found:
                texts = {self.documents[number].page_content for number in found}
                return found[:1] if len(texts) == 1 else found
        return []

    def _names(self, document: Document) -> Iterator[tuple[str, str]]:
        names = {"id": document.id, "parent": parent_name(document)}
        names["key"] = group_of(document, self.document_key)
        return ((kind, name) for kind, name in names.items() if name is not None)

    def _with_text(self, numbers: Sequence[int], text: str) -> list[int]:
        if not (squeezed := "".join(text.split())):
            return []
        holding = [
            number for number in numbers if text in self.documents[number].page_content
        ]
        if holding:
            return holding
        for number in numbers:  # splitters may change white space
            if number not in self._squeezed:
                self._squeezed[number] = "".join(
                    self.documents[number].page_content.split()
                )
        return [number for number in numbers if squeezed in self._squeezed[number]]


class ScoredMetadata(dict[str, Any]):
    """The metadata of a result.

    Scores do not affect equality, so `MultiQueryRetriever` keeps a sentence once.

    Not a subclass of Document: a LangGraph checkpoint restores only LangChain's own
    classes.
    """

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoredMetadata):
            return super().__eq__(other)
        own, others = (
            {k: v for k, v in each.items() if k not in ALL_SCORE_KEYS}
            for each in (self, other)
        )
        return own == others

    @override
    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # mutable, like dict


def scored_document(
    text: str, metadata: Mapping[str, Any], name: str | None
) -> Document:
    """A document with `ScoredMetadata`."""
    document = Document(page_content=text, id=name)
    document.metadata = ScoredMetadata(
        metadata
    )  # not in the call: pydantic would turn it into a plain dict
    return document


UNKNOWN = -1  # what LangChain's splitters write for an offset that they cannot find


@dataclass(frozen=True)
class DocumentHost(Host[Document]):
    """How LangChain's documents are held; ``document_key`` is that of the retriever."""

    document_key: str | None

    framework = "langchain"
    items_name = "Documents"

    def key(self, item: Document) -> str:
        return own_name(item)

    def join(self, items: Sequence[Document]) -> list[ReadText[Document]]:
        return read(items, self.document_key, complete=True)

    def finder(
        self, items: Sequence[Document], texts: Sequence[ReadText[Document]]
    ) -> Callable[[Document], int | None]:
        text_of = {
            placed.number: number
            for number, text in enumerate(texts)
            for placed in text.joined.placed
        }
        wholes = Wholes(items, self.document_key)

        def find(chunk: Document) -> int | None:
            require_document(chunk, "the first stage's documents")
            found = {text_of.get(number) for number in wholes.holding(chunk)}
            return found.pop() if len(found) == 1 else None

        return find

    def join_found(self, found: Sequence[Document]) -> list[ReadText[Document]]:
        return read(found, self.document_key)

    def score(self, found: Sequence[Document]) -> float | None:
        return score_of(found[0])

    def records(self, items: Sequence[Document]) -> Iterable[Mapping[str, Any]]:
        return (
            {
                "id": item.id,
                "page_content": item.page_content,
                "metadata": item.metadata,
            }
            for item in items
        )

    def restored(
        self, records: Sequence[Mapping[str, Any]]
    ) -> tuple[Self, Sequence[Document]]:
        return self, own_copies(Document(**record) for record in records)


def _own_start(hit: Hit, text: ReadText[Document]) -> int | None:
    """Where a hit begins by the offsets of its own chunks, where those of others conflict; None if these do."""
    starts = set()
    for placed in text.joined.touching(hit.start, hit.end):
        own = start_of(text.items[placed.number])
        if own is not None and own >= 0:
            starts.add(own + placed.offset + hit.start - placed.start)
    return starts.pop() if len(starts) == 1 else None


class DocumentAnswer(Answer[Document, Document]):
    """Results as new documents, which share no objects with those that contain the sentences."""

    page_keys: ClassVar = _PAGES
    unknown_offset: ClassVar = UNKNOWN

    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        place, document = hit.place, text.items[hit.place.piece]
        if place.source_start is not None and place.source_end is not None:
            start, end = place.source_start, place.source_end
            identity = f"{place.source[1]}:{start}-{end}"  # type: ignore[index]  # see `read`
        else:
            start = end = UNKNOWN
            within = digest(hit.text)
            if place.piece_start is not None and place.piece_end is not None:
                within = f"{place.piece_start}-{place.piece_end}"
                if (own := _own_start(hit, text)) is not None:
                    start, end = own, own + place.piece_end - place.piece_start
            identity = f"{stable_name(document)}:{within}"
        metadata = self.metadata(hit, text, place.piece)
        metadata |= {
            "start_index": start,
            "end_index": end,
            ID_KEY: identity,
        } | self.place_metadata(hit, text)
        self.results.append(scored_document(hit.text, metadata, identity))

    def add_piece(
        self,
        best: Hit,
        text: ReadText[Document],
        piece: int,
        content: str,
        saved: Mapping[str, float],
    ) -> None:
        metadata = {**self.metadata(best, text, piece), **saved}
        self.results.append(scored_document(content, metadata, text.items[piece].id))

    def content(self, of: Document) -> str:
        return of.page_content

    def retrieval_score_of(self, item: Document) -> float | None:
        return score_of(item)

    def metadata_of(self, item: Document) -> Mapping[str, Any]:
        return item.metadata

    @override
    def metadata(
        self, hit: Hit, text: ReadText[Document], piece: int
    ) -> dict[str, Any]:
        return super().metadata(hit, text, piece) | {SCORE_KEY: hit.score}
