"""Metadata filters on nodes: LlamaIndex's own meaning of each operator, nesting."""

from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.retrievers.spscanner.host import node_filter

NODE = TextNode(
    text="x", id_="n", metadata={"year": 1911, "place": "Lyme", "tags": ["sea", "town"], "none": ""}
)


def one(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


YES, NO = one("year", 1911), one("year", 1912)


@pytest.mark.parametrize(
    ("parts", "condition", "expected"),
    [
        ([YES, NO], "and", False),
        ([YES, YES], "and", True),
        ([YES, NO], "or", True),
        ([NO, NO], "or", False),
        ([NO, NO], "not", True),
        ([YES, NO], "not", False),
        ([], "and", True),
        ([], "or", True),
        ([], "not", True),
        ([MetadataFilters(filters=[NO, YES], condition=FilterCondition.OR), YES], "and", True),
        ([MetadataFilters(filters=[YES], condition=FilterCondition.NOT), YES], "and", False),
    ],
)
def test_conditions_and_nested_filters(parts: list[MetadataFilters], condition: str, expected: bool) -> None:
    filters = MetadataFilters(filters=parts, condition=FilterCondition(condition))
    assert node_filter(filters)(NODE) is expected
