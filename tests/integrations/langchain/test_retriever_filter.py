from typing import Any

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
