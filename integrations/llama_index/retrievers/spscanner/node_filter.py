"""LlamaIndex's metadata filters as functions of a node."""

from collections.abc import Callable
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

NodeFilter = Callable[[BaseNode], bool]


def node_filter(filters: MetadataFilters) -> NodeFilter:
    """A function that is true if a node's metadata pass the filters.

    ``TypeError`` for any other object.

    Examples
    --------
    >>> from llama_index.core.schema import TextNode
    >>> passes = node_filter(MetadataFilters.from_dict({"year": 1911}))
    >>> passes(TextNode(text="A treaty.", metadata={"year": 1911}))
    True
    """
    if not isinstance(filters, MetadataFilters):
        raise TypeError(
            f"filters is {type(filters).__name__}; expected"
            " llama_index.core.vector_stores.MetadataFilters"
        )
    parts: list[NodeFilter] = []
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            parts.append(node_filter(part))
        else:
            parts.append(_single_filter(part))
    if filters.condition == FilterCondition.OR:
        return lambda node: not parts or any(part(node) for part in parts)
    if filters.condition == FilterCondition.NOT:
        return lambda node: not any(part(node) for part in parts)
    return lambda node: all(part(node) for part in parts)


def _single_filter(part: MetadataFilter) -> NodeFilter:
    # LlamaIndex's function takes a key to look metadata up by; here the metadata are
    # their own key.
    passes: Callable[[Any], Any] = build_metadata_filter_fn(
        lambda metadata: metadata,  # type: ignore[arg-type, return-value]
        MetadataFilters(filters=[part]),
    )
    return lambda node: bool(passes(node.metadata))
