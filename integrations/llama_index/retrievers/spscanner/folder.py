"""The nodes and documents of a retriever and their word counts in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.constants import DATA_KEY
from llama_index.core.schema import BaseNode, Document, ImageDocument, ImageNode, IndexNode, Node, TextNode
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc

from spscanner_rag.retrieval import Corpus, check_json, read_corpus, write_corpus

_FRAMEWORK = "llama-index"
_KINDS = (Document, ImageDocument, ImageNode, IndexNode, Node, TextNode)


def persist_nodes(
    path: str | Path, nodes: Sequence[BaseNode], documents: Sequence[BaseNode], corpus: Corpus
) -> None:
    """Write nodes, documents and counts; ``ValueError`` for what LlamaIndex's JSON cannot keep."""
    records = [{"role": "node", "node": _record(node)} for node in nodes]
    records += [{"role": "document", "node": _record(document)} for document in documents]
    write_corpus(path, _FRAMEWORK, records, corpus)


def load_nodes(path: str | Path) -> tuple[list[BaseNode], list[BaseNode], Corpus]:
    """Read nodes, documents and counts; ``ValueError`` if the folder does not hold them."""
    records, corpus = read_corpus(path, _FRAMEWORK)
    found: dict[str, list[BaseNode]] = {"node": [], "document": []}
    for record in records:
        found[record["role"]].append(json_to_doc(record["node"]))
    return found["node"], found["document"], corpus


def _record(node: BaseNode) -> dict[str, Any]:
    if type(node) not in _KINDS:
        raise ValueError(
            f"node {node.node_id!r} is {type(node).__name__}; expected one of LlamaIndex's own node classes, "
            "which it can read from JSON: convert it before persist"
        )
    # Before LlamaIndex turns objects in it into dictionaries, which cannot be seen afterwards.
    check_json(node.metadata, "metadata", f"node {node.node_id!r}")
    record: dict[str, Any] = doc_to_json(node)
    if record[DATA_KEY].get("text_resource"):
        record[DATA_KEY].pop("text", None)  # there twice
    return record
