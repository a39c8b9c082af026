"""LlamaIndex's metadata filters on nodes: every operator, and filters within filters."""

from collections.abc import Callable
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

NodeFilter = Callable[[BaseNode], bool]


def node_filter(filters: MetadataFilters) -> NodeFilter:
    """A function that is true if a node's metadata pass; ``ValueError`` for ">" to a number and a string."""
    parts = [
        node_filter(part) if isinstance(part, MetadataFilters) else _single(part) for part in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return lambda node: not parts or any(part(node) for part in parts)
    if filters.condition == FilterCondition.NOT:
        return lambda node: not any(part(node) for part in parts)
    return lambda node: all(part(node) for part in parts)


def _single(part: MetadataFilter) -> NodeFilter:
    # LlamaIndex's function takes a key to look metadata up by; here the metadata are their own key.
    lookup: Callable[[Any], Any] = build_metadata_filter_fn(
        lambda metadata: metadata,  # type: ignore[arg-type, return-value]
        MetadataFilters(filters=[part]),
    )

    def passes(node: BaseNode) -> bool:
        try:
            return bool(lookup(node.metadata))
        except TypeError:
            raise ValueError(
                f"filters: got {part.key} {part.operator.value} {part.value!r:.60} for the node {node.node_id!r}, "
                f"whose {part.key} is {node.metadata.get(part.key)!r:.60}; expected values that it can compare"
            ) from None

    return passes
