from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from langchain_spscanner import SPScannerRetriever
from langchain_spscanner._document_filter import predicate_of

CUTTER = Document("x", metadata={"year": 1872, "port": "Saltmere", "tags": ["fast"]})


@pytest.mark.parametrize(
    ("chosen_by", "passes"),
    [
        ({}, True),
        ({"year": 1872}, True),
        ({"year": 1873}, False),
        ({"tags": ["fast"]}, True),
        ({"year": {"$eq": 1872}}, True),
        ({"year": {"$ne": 1872}}, False),
        ({"year": {"$gt": 1871, "$lt": 1873}}, True),
        ({"year": {"$gt": 1872}}, False),
        ({"year": {"$gte": 1872}}, True),
        ({"year": {"$lt": 1872}}, False),
        ({"year": {"$lte": 1872}}, True),
        ({"year": {"$gte": "a word"}}, False),
        ({"port": {"$in": ["Riga", "Saltmere"]}}, True),
        ({"port": {"$nin": ["Riga", "Saltmere"]}}, False),
        ({"owner": {"$gte": 1}}, False),
        ({"owner": {"$ne": "Carne"}}, True),
        ({"owner": {"$nin": ["Carne"]}}, True),
        ({"owner": {"$in": ["Carne"]}}, False),
        ({"$and": [{"year": 1872}, {"port": "Riga"}]}, False),
        (
            {"$or": [{"year": 1}, {"$and": [{"year": 1872}, {"port": "Saltmere"}]}]},
            True,
        ),
        ({"$not": {"year": 1872}}, False),
        ({"year": 1872, "$or": [{"port": "Riga"}]}, False),
    ],
)
def test_values_and_operators(chosen_by: dict[str, Any], passes: bool) -> None:
    predicate = predicate_of(chosen_by)
    assert predicate is not None
    assert predicate(CUTTER) is passes


@pytest.mark.parametrize(
    ("chosen_by", "error", "message"),
    [
        ({"year": {"$above": 3}}, ValueError, r"\$above'; expected one of \$eq"),
        ({"year": {"gte": 3}}, ValueError, r"got 'gte' in .*; expected \$gte"),
        ({"$xor": []}, ValueError, r"\$xor'; expected one of \$and"),
        ({"$or": {"year": 3}}, TypeError, "dict for \\$or; expected a list"),
        ({"$or": []}, TypeError, "at least one filter"),
        ({"$and": ["year"]}, TypeError, "got str in a filter"),
        ({"port": {"$in": "Riga"}}, TypeError, "str for \\$in; expected a list"),
        ("year", TypeError, "got str; expected a function"),
    ],
)
def test_what_cannot_be_tested_is_refused_when_it_is_given(
    chosen_by: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        predicate_of(chosen_by)
    with pytest.raises((ValueError, TypeError), match=message):
        SPScannerRetriever(documents=[CUTTER], filter=chosen_by)


def test_filters_too_deep_are_refused() -> None:
    deep: dict[str, Any] = {"year": 1}
    for _ in range(30):
        deep = {"$not": deep}
    with pytest.raises(ValueError, match="deep"):
        predicate_of(deep)


def nested(depth: int) -> dict[str, Any]:
    """A dictionary in a dictionary, and so on."""
    outermost: dict[str, Any] = {}
    inner = outermost
    for _ in range(depth):
        inner["a"] = {}
        inner = inner["a"]
    return outermost


@pytest.mark.parametrize(
    "value", [np.arange(3), nested(100_000), float("nan"), [[1]], {1}, b"a"]
)
@pytest.mark.parametrize(
    "operand", [np.arange(2), nested(100_000), float("nan"), [2], {2}, "a", 1]
)
def test_values_that_cannot_be_compared_do_not_pass(value: Any, operand: Any) -> None:
    document = Document("Anne left.", metadata={"key": value})
    for operator in ("$eq", "$gt", "$gte", "$lt", "$lte"):
        predicate = predicate_of({"key": {operator: operand}})
        assert predicate is not None
        assert not predicate(document)
    for operator, passes in (("$in", False), ("$nin", True), ("$ne", True)):
        chosen = operand if operator == "$ne" else [operand, nested(9)]
        predicate = predicate_of({"key": {operator: chosen}})
        assert predicate is not None
        assert predicate(document) is passes


def test_a_long_list_of_values_is_looked_up_by_hash() -> None:
    class Counted(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    ports = [Counted(f"port {number}") for number in range(10_000)]
    predicate = predicate_of({"port": {"$in": ports}})
    assert predicate is not None
    Counted.compared = 0
    assert not predicate(CUTTER)
    assert Counted.compared < 10


def test_equal_values_of_other_kinds_are_found() -> None:
    document = Document("Anne left.", metadata={"set": {1}, "list": [1], "number": 1})
    for chosen_by in (
        {"set": {"$in": [frozenset({1})]}},
        {"list": {"$in": [(2,), [1]]}},
        {"number": {"$in": [True]}},
        {"number": {"$in": {1.0}}},
    ):
        predicate = predicate_of(chosen_by)
        assert predicate is not None
        assert predicate(document)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (range(10**9), ValueError),
        (b"Riga", TypeError),
        ({"Riga": 1}, TypeError),
        (iter(["Riga"]), TypeError),
        (None, TypeError),
    ],
)
def test_lists_without_bound_and_no_lists_are_refused(
    values: Any, error: type[Exception]
) -> None:
    for operator in ("$in", "$nin"):
        with pytest.raises(error, match=rf"filter: got .* \{operator}; expected"):
            predicate_of({"port": {operator: values}})
