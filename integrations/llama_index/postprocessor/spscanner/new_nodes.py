"""Makes the nodes of results, and leaves those that were passed as they are."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from spscanner_rag.retrieval import Hit, result_metadata

_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")


def sentence_node(
    name: str,
    hit: Hit,
    node: BaseNode,
    metadata: dict[str, Any],
    relationships: dict[NodeRelationship, Any],
) -> TextNode:
    """A node for a sentence of a node, which is shown like that node."""
    templates = {}
    for template in _TEMPLATES:
        if hasattr(node, template):
            templates[template] = getattr(node, template)
    return TextNode(
        id_=name,
        text=hit.text,
        start_char_idx=hit.place.source_start,
        end_char_idx=hit.place.source_end,
        relationships=relationships,
        **_metadata_fields(node, metadata),
        **templates,
    )


def pruned_node(node: BaseNode, text: str, reductions: Mapping[str, float]) -> BaseNode:
    """A copy of a node with its pruned text.

    The metadata have the share that pruning saved.
    """
    changed = _metadata_fields(node, {**result_metadata(node.metadata), **reductions})
    changed["relationships"] = dict(node.relationships)
    # Its embedding and offsets are for its whole text.
    changed["embedding"] = None
    for name in ("start_char_idx", "end_char_idx"):
        if hasattr(node, name):
            changed[name] = None
    copy = node.model_copy(update=changed)
    copy.set_content(text)
    return copy


def without_word_places(info: RelatedNodeInfo) -> RelatedNodeInfo:
    """A copy of a relation without the places of the page's words."""
    return info.model_copy(update={"metadata": result_metadata(info.metadata)})


def _metadata_fields(node: BaseNode, metadata: dict[str, Any]) -> dict[str, Any]:
    """Fields that give a node these metadata, and hide our keys from models."""
    fields: dict[str, Any] = {"metadata": metadata}
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        excluded = list(getattr(node, name))
        for key in metadata:
            if key.startswith("spscanner_") and key not in excluded:
                excluded.append(key)
        fields[name] = excluded
    return fields
