"""Whole texts of the documents that nodes were cut from."""

from collections.abc import Hashable, Iterable, Sequence

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.nodes import document_texts, text_of


def check_documents(documents: Iterable[BaseNode]) -> None:
    """Raise ``ValueError`` if one id stands for two texts."""
    texts: dict[str, str] = {}
    for document in documents:
        text = text_of(document)
        if texts.setdefault(document.node_id, text) != text:
            raise ValueError(
                f"documents: got two texts with the id {document.node_id!r}; expected one: give them ids of "
                "their own, and the nodes cut from them too"
            )


def source_texts(
    ids: Iterable[str], documents: Iterable[BaseNode] | None, docstore: BaseDocumentStore | None
) -> dict[Hashable, str]:
    """Texts of the documents that are at hand, by id.

    A document store may hold the document, or else all the nodes that were cut from it.
    """
    texts = {document.node_id: text_of(document) for document in documents or ()}
    found: dict[Hashable, str] = {}
    for name in dict.fromkeys(ids):
        text = texts.get(name)
        if not text and docstore is not None:
            text = _stored(name, docstore)
        if text:
            found[name] = text
    return found


def _stored(name: str, docstore: BaseDocumentStore) -> str | None:
    document = docstore.get_document(name, raise_error=False)
    if document is not None:
        return text_of(document)
    info = docstore.get_ref_doc_info(name)
    if info is None:
        return None
    nodes: Sequence[BaseNode] = docstore.get_nodes(list(info.node_ids), raise_error=False)
    return document_texts(nodes)
