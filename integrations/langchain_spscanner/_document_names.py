"""Names of LangChain documents: their ids, or digests of what is in them."""

from langchain_core.documents import Document

from langchain_spscanner._canonical import digest
from langchain_spscanner._document_metadata import ALL_SCORE_KEYS, EARLIER_SCORE_KEYS
from spscanner_rag.retrieval import is_random_id

# Keys whose values differ between the chunks of one document: scores, ids in a store,
# and offsets.
_KEYS_OF_A_STORE = ALL_SCORE_KEYS.union(
    EARLIER_SCORE_KEYS, ("_id", "_collection_name", "chunk_id", "pk")
)
_KEYS_OF_A_CHUNK = _KEYS_OF_A_STORE.union(("start_index", "end_index", "chunk_index"))


def document_name(document: Document) -> str:
    """The document's id, or a digest of its text and metadata."""
    return document.id or content_name(document)


def stable_name(document: Document) -> str:
    """A name that is the same in every run and store.

    It is the `document_name`, or a digest if the id is random.
    """
    if document.id and is_random_id(document.id):
        return content_name(document)
    return document_name(document)


def content_name(document: Document) -> str:
    """A digest of text and metadata, without what a store or a search adds."""
    metadata = {}
    for key, value in document.metadata.items():
        if key not in _KEYS_OF_A_STORE:
            metadata[key] = value
    return digest((document.page_content, metadata))


def parent_name(document: Document) -> str:
    """A digest that a document shares with its chunks.

    Splitters copy the metadata.
    """
    metadata = {}
    for key, value in document.metadata.items():
        if key not in _KEYS_OF_A_CHUNK and not key.startswith("spscanner_"):
            metadata[key] = value
    return digest(metadata)
