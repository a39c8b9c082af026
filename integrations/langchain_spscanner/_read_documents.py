"""LangChain documents as texts to read."""

from collections.abc import Collection, Hashable, Sequence

from langchain_core.documents import Document

from langchain_spscanner._document_copies import require_document
from langchain_spscanner._document_metadata import PAGE_KEYS, group_of, start_of
from langchain_spscanner._document_names import document_name, parent_name, stable_name
from langchain_spscanner._whole_documents import WholeDocuments
from spscanner_rag.retrieval import (
    Piece,
    ReadText,
    join_pieces,
    page_number,
    share_text,
)


def read_documents(
    documents: Sequence[Document],
    document_key: str | None,
    wholes: WholeDocuments | None = None,
    *,
    complete: bool = False,
) -> list[ReadText[Document]]:
    """Join documents to texts.

    A document with an integer ``start_index`` is a chunk; so are those with a value
    under the key, equal metadata and overlapping texts. ``source[1]`` of a piece names
    the document that its offsets refer to.

    Parameters
    ----------
    documents : sequence of Document
        Whole documents, pages or chunks.
    document_key : str or None
        Documents with the same metadata under this key become one text.
    wholes : WholeDocuments, optional
        Where it has a chunk's document, that is read instead of the chunk.
    complete : bool
        Whether documents that are no chunks are whole, so that pages may continue each
        other.
    """
    chunk_parents = _parents_with_shared_text(documents, document_key)
    sources: dict[Hashable, str] = {}
    pieces: list[Piece] = []
    for number, document in enumerate(documents):
        group = group_of(document, document_key)
        start = start_of(document)
        source = None
        if wholes is not None:
            source = _whole_source(document, wholes, sources)
        if source is None and _is_chunk(document, group, chunk_parents):
            source = ("parent", parent_name(document))
        is_whole = source is None
        if is_whole:
            start = 0
            # Several texts may have the same id.
            source = ("whole", stable_name(document), document.page_content)
        position = page_number(document.metadata, PAGE_KEYS)
        piece = Piece(
            text=document.page_content,
            key=str(number),
            source=source,
            start=start,
            group=group,
            position=position,
            page=position is not None and group is not None,
            last=is_whole and complete,
        )
        pieces.append(piece)
    return [ReadText(joined, documents) for joined in join_pieces(pieces, sources)]


def _parents_with_shared_text(
    documents: Sequence[Document], document_key: str | None
) -> set[str]:
    """Names of documents whose chunks have overlapping texts."""
    texts_of_parent: dict[str, list[str]] = {}
    for document in documents:
        require_document(document, "documents")
        if group_of(document, document_key) is not None:
            texts = texts_of_parent.setdefault(parent_name(document), [])
            texts.append(document.page_content)
    return {parent for parent, texts in texts_of_parent.items() if share_text(texts)}


def _is_chunk(
    document: Document, group: str | None, chunk_parents: Collection[str]
) -> bool:
    if start_of(document) is not None:
        return True
    if group is None or not chunk_parents:
        return False
    return parent_name(document) in chunk_parents


def _whole_source(
    chunk: Document, wholes: WholeDocuments, sources: dict[Hashable, str]
) -> Hashable | None:
    """The source of a chunk whose whole document is known, with its text."""
    numbers = wholes.holding(chunk)
    if len(numbers) != 1:
        return None
    document = wholes.documents[numbers[0]]
    source = ("given", stable_name(document), document_name(document))
    sources[source] = document.page_content
    return source
