"""Metadata filters on nodes: LlamaIndex's own meaning of each operator, nesting, and what cannot be compared."""

from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.retrievers.spscanner.filters import node_filter

NODE = TextNode(
    text="x", id_="n", metadata={"year": 1911, "place": "Lyme", "tags": ["sea", "town"], "none": ""}
)


def one(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("year", "==", 1911, True),
        ("year", "==", 1912, False),
        ("year", "!=", 1912, True),
        ("missing", "!=", 1, True),
        ("missing", "==", 1, False),
        ("year", ">", 1900, True),
        ("year", ">=", 1912, False),
        ("year", "<", 1912, True),
        ("year", "<=", 1910, False),
        ("place", "in", ["Lyme", "Bath"], True),
        ("place", "nin", ["Lyme"], False),
        ("tags", "any", ["sea", "moor"], True),
        ("tags", "all", ["sea", "moor"], False),
        ("tags", "contains", "town", True),
        ("place", "text_match", "ym", True),
        ("place", "text_match_insensitive", "LYME", True),
        ("none", "is_empty", None, True),
        ("place", "is_empty", None, False),
        ("missing", "is_empty", None, True),
    ],
)
def test_every_operator(key: str, operator: str, value: Any, expected: bool) -> None:
    assert node_filter(one(key, value, FilterOperator(operator)))(NODE) is expected


def test_no_operator_is_forgotten() -> None:
    cases = next(mark.args[1] for mark in test_every_operator.pytestmark)
    assert {case[1] for case in cases} == {operator.value for operator in FilterOperator}


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
def test_conditions_and_filters_within_filters(
    parts: list[MetadataFilters], condition: str, expected: bool
) -> None:
    filters = MetadataFilters(filters=parts, condition=FilterCondition(condition))
    assert node_filter(filters)(NODE) is expected


@pytest.mark.parametrize(
    ("key", "operator", "value"), [("place", ">", 3), ("year", "text_match", "19"), ("year", "contains", 1)]
)
def test_values_that_do_not_compare_are_named(key: str, operator: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"filters: got {key} {operator} .* for the node 'n'"):
        node_filter(one(key, value, FilterOperator(operator)))(NODE)
