"""The whole documents that nodes were cut from."""

from collections.abc import Iterable, Mapping

from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
)
from llama_index.core.storage.docstore import BaseDocumentStore

from llama_index.postprocessor.spscanner.node_groups import files_of
from llama_index.postprocessor.spscanner.node_pieces import (
    piece_of,
    without_duplicates,
)
from llama_index.postprocessor.spscanner.node_relations import (
    related,
    source_id,
    text_of,
)
from spscanner_rag.retrieval import join_pieces

# Maximum white space, in characters, that a splitter may drop before the first chunk.
_MOST_WHITE_SPACE = 64


class WholeDocuments:
    """Finds the document of a node whose SOURCE is unknown.

    It is the only one of the same file that has the node's text.
    """

    def __init__(self, documents: Iterable[BaseNode]) -> None:
        self._ids: set[str] = set()
        self._documents_of_file: dict[tuple[str, str], list[BaseNode]] = {}
        for document in documents:
            self._ids.add(source_id(document))
            for file in files_of(document):
                self._documents_of_file.setdefault(file, []).append(document)

    def tied(self, scored: NodeWithScore) -> NodeWithScore:
        """Return the node, or a copy tied to its document.

        A document that was read again has a new id.
        """
        node = scored.node
        if source_id(node) in self._ids:
            return scored
        source = self._source_with_text(node)
        if source is None:
            return scored
        relationships = {**node.relationships, NodeRelationship.SOURCE: source}
        tied_node = node.model_copy(update={"relationships": relationships})
        return scored.model_copy(update={"node": tied_node})

    def _source_with_text(self, node: BaseNode) -> RelatedNodeInfo | None:
        """The only document of the node's file that has its text."""
        text = text_of(node)
        if not text:
            return None
        document_of_source: dict[str, BaseNode] = {}
        for document in self._documents_of_same_file(node):
            if text in text_of(document):
                document_of_source[source_id(document)] = document
        if len(document_of_source) != 1:
            return None
        (document,) = document_of_source.values()  # or a chunk of it
        source = related(document, NodeRelationship.SOURCE)
        return document.as_related_node_info() if source is None else source

    def _documents_of_same_file(self, node: BaseNode) -> list[BaseNode]:
        for file in files_of(node):
            if file in self._documents_of_file:
                return self._documents_of_file[file]
        return []


def whole_text(
    name: str, documents: Mapping[str, BaseNode], docstore: BaseDocumentStore | None
) -> str:
    """A document's text, or the text of all of its nodes in the store.

    Empty if neither is available.
    """
    text = ""
    if name in documents:
        text = text_of(documents[name])
    if text or docstore is None:
        return text
    document = docstore.get_document(name, raise_error=False)
    if document is not None:
        return text_of(document)
    return _text_of_stored_nodes(name, docstore)


def _text_of_stored_nodes(name: str, docstore: BaseDocumentStore) -> str:
    """The nodes of a document joined, if nothing but white space is missing."""
    info = docstore.get_ref_doc_info(name)
    if info is None:
        return ""
    nodes = docstore.get_nodes(list(info.node_ids), raise_error=False)
    scored_nodes = without_duplicates(NodeWithScore(node=node) for node in nodes)
    texts = join_pieces([piece_of(scored.node, None) for scored in scored_nodes])
    if len(texts) != 1 or len(texts[0].runs) != 1:
        return ""
    n_missing = texts[0].runs[0].source_start
    if n_missing is None or n_missing > _MOST_WHITE_SPACE:
        return ""
    return "\n" * n_missing + texts[0].text
