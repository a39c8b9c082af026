"""Identify documents, and the whole document that a chunk was cut from, by id, metadata and text."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real

from langchain_core.documents import Document

from langchain_spscanner._scored import ALL_SCORE_KEYS
from spscanner_rag.retrieval import copied_metadata, is_random_id

SCORES = ("relevance_score", "score")
"""Metadata keys with the score of an earlier stage; the first one present counts."""

# Keys whose values differ between the chunks of one document: their offsets, scores, and ids in a store.
_PLACES = ("start_index", "end_index", "chunk_index")
_STORE_IDS = ("_id", "_collection_name", "chunk_id", "pk")
_OF_THE_STORE = frozenset((*SCORES, *ALL_SCORE_KEYS, *_STORE_IDS))


def is_chunk(document: Document) -> bool:
    """Whether a document is a chunk of another one, which an integer ``start_index`` shows."""
    start = _number(document.metadata.get("start_index"))
    return start is not None and start == int(start)


def start_of(document: Document) -> int | None:
    """Offset of a chunk in the document it was cut from; None if unknown, like LangChain's -1."""
    start = _number(document.metadata.get("start_index"))
    return int(start) if start is not None and start == int(start) >= 0 else None


def score_of(document: Document) -> float | None:
    """The score of an earlier stage, if any."""
    for name in SCORES:
        value = _number(document.metadata.get(name))
        if value is not None:
            return value
    return None


def _number(value: object) -> float | None:
    # Accepts floats for integers, because some stores keep every number as a float.
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return float(value)


def parent_name(document: Document) -> str:
    """The same for a document and all of its chunks, since splitters copy the metadata."""
    return digest(
        {
            key: value
            for key, value in document.metadata.items()
            if key not in _OF_THE_STORE and key not in _PLACES and not key.startswith("spscanner_")
        }
    )


def group_of(document: Document, document_key: str | None) -> str | None:
    """The same for documents with equal metadata under the key; None without a value."""
    value = None if document_key is None else document.metadata.get(document_key)
    return None if value is None else canonical(value)


def own_name(document: Document) -> str:
    """The document's id, or a digest of its text and metadata."""
    return document.id or _content_name(document)


def stable_name(document: Document) -> str:
    """The same in every run and for every store: `own_name`, unless the id was made up at random."""
    return _content_name(document) if document.id and is_random_id(document.id) else own_name(document)


def _content_name(document: Document) -> str:
    """A digest of text and metadata, without what a store or a search adds."""
    metadata = {key: value for key, value in document.metadata.items() if key not in _OF_THE_STORE}
    return digest((document.page_content, metadata))


def digest(value: object) -> str:
    """A hash that is the same for equal values in every process."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def canonical(value: object) -> str:
    """A string that is equal for equal values, whatever the order of keys."""
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{canonical(k)}:{canonical(v)}" for k, v in value.items())) + "}"
    if isinstance(value, list | tuple):  # stores that keep JSON return tuples as lists
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, set | frozenset):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    if isinstance(value, float) and value.is_integer():  # some stores keep every number as a float
        return repr(int(value))
    if type(value).__repr__ is object.__repr__:
        return type(value).__qualname__  # its repr contains an address, which differs between copies
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
                page_content=document.page_content, metadata=copied_metadata(document.metadata), id=name
            )
        elif _content_name(known) != _content_name(document):
            raise ValueError(
                f"documents: got two different documents with the id {name!r}; expected an id of its own for "
                "each, or None for one made of its text and metadata"
            )
    return tuple(own.values())


def require_document(document: object, where: str) -> None:
    """Raise ``TypeError`` for anything but a Document."""
    if not isinstance(document, Document):
        raise TypeError(
            f"{where}: got {type(document).__name__}; expected langchain_core.documents.Document objects"
        )


class Wholes:
    """Finds the whole document that a chunk was cut from.

    It has the chunk's id, else the chunk's metadata, else the same value under ``document_key``, and it must
    contain the chunk's text.
    """

    def __init__(self, documents: Sequence[Document], document_key: str | None) -> None:
        self.documents = documents
        self.document_key = document_key
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._squeezed: dict[int, str] = {}
        for number, document in enumerate(documents):
            for name in self._names(document):
                self._numbers.setdefault(name, []).append(number)

    def holding(self, chunk: Document) -> list[int]:
        """Indices of the documents that the chunk may be cut from; one, unless it is ambiguous or unknown."""
        for name in self._names(chunk):
            found = self._with_text(self._numbers.get(name, ()), chunk)
            if found:
                texts = {self.documents[number].page_content for number in found}
                return found[:1] if len(texts) == 1 else found
        return []

    def _names(self, document: Document) -> Iterator[tuple[str, str]]:
        if document.id is not None:
            yield "id", document.id
        yield "parent", parent_name(document)
        group = group_of(document, self.document_key)
        if group is not None:
            yield "key", group

    def _with_text(self, candidates: Iterable[int], chunk: Document) -> list[int]:
        text, start = chunk.page_content, start_of(chunk)
        squeezed = "".join(text.split())
        numbers = list(candidates)
        if not squeezed:
            return []
        if start is not None and (there := [n for n in numbers if self._stands_at(n, text, start)]):
            return there
        holding = [number for number in numbers if text in self.documents[number].page_content]
        return holding or [number for number in numbers if squeezed in self._without_space(number)]

    def _stands_at(self, number: int, text: str, start: int) -> bool:
        whole = self.documents[number]
        shift = start - (start_of(whole) or 0)
        return shift >= 0 and whole.page_content.startswith(text, shift)

    def _without_space(self, number: int) -> str:
        # Splitters may change white space; this is computed only if a chunk does not occur in a document as it is.
        if number not in self._squeezed:
            self._squeezed[number] = "".join(self.documents[number].page_content.split())
        return self._squeezed[number]
