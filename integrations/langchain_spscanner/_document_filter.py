"""The filter of a retriever: which documents may give results."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

Filter = Callable[[Document], bool] | Mapping[str, Any]
"""A function of a document, or metadata values that it must have, with operators."""

_MISSING = object()
_DEEPEST = 20  # filters within filters
_MOST_VALUES = 1_000_000  # of $in and $nin
# of values that have no order or equality, such as an array and a number
_NOT_COMPARABLE = (TypeError, ValueError, RecursionError)

_Check = Callable[[Any], bool]
"""Tests a value of the metadata, or `_MISSING`."""


def predicate_of(chosen_by: Filter | None) -> Callable[[Document], bool] | None:
    """A filter as a function, None if all documents pass.

    Parameters
    ----------
    chosen_by : callable, mapping or None
        A mapping has the value that each metadata key must have, or operators on it:
        ``{"year": {"$gte": 2020, "$lt": 2024}}``. The operators are those of
        LangChain's vector stores: $eq, $ne, $gt, $gte, $lt, $lte, $in and $nin on a
        key; $and, $or and $not on filters. A key that the metadata lack passes $ne and
        $nin alone; values that cannot be compared, such as a word and a number, do not
        pass.

    Raises
    ------
    TypeError
        For anything but a function or a mapping, and for operands of another type.
    ValueError
        For an unknown operator.

    Examples
    --------
    >>> passes = predicate_of({"year": {"$gte": 1900}, "port": {"$in": ["Riga"]}})
    >>> passes(Document("She sailed.", metadata={"year": 1902, "port": "Riga"}))
    True
    """
    if chosen_by is None or callable(chosen_by):
        return chosen_by
    if not isinstance(chosen_by, Mapping):
        raise TypeError(
            f"filter: got {type(chosen_by).__name__}; expected a function of a"
            " Document, or a dictionary of metadata values"
        )
    return _all_of(chosen_by, 0)


def _all_of(chosen_by: object, depth: int) -> Callable[[Document], bool]:
    """A function that is true if a document has everything in a mapping."""
    if not isinstance(chosen_by, Mapping):
        raise TypeError(
            f"filter: got {type(chosen_by).__name__} in a filter; expected a dictionary"
            " of metadata values"
        )
    if depth > _DEEPEST:
        raise ValueError(
            f"filter: got filters more than {_DEEPEST} deep; expected fewer"
        )
    parts = []
    for key, value in chosen_by.items():
        if key in ("$and", "$or"):
            parts.append(_of_several(key, value, depth))
        elif key == "$not":
            parts.append(_not(_all_of(value, depth + 1)))
        elif isinstance(key, str) and key.startswith("$"):
            raise _unknown(key, "$and, $or, $not, or a metadata key")
        else:
            parts.append(_on_key(key, _check_of(value)))
    return lambda document: all(part(document) for part in parts)


def _of_several(key: str, filters: object, depth: int) -> Callable[[Document], bool]:
    if not isinstance(filters, Sequence) or isinstance(filters, str) or not filters:
        raise TypeError(
            f"filter: got {type(filters).__name__} for {key}; expected a list of at"
            " least one filter"
        )
    parts = [_all_of(part, depth + 1) for part in filters]
    if key == "$and":
        return lambda document: all(part(document) for part in parts)
    return lambda document: any(part(document) for part in parts)


def _not(passes: Callable[[Document], bool]) -> Callable[[Document], bool]:
    return lambda document: not passes(document)


def _on_key(key: str, check: _Check) -> Callable[[Document], bool]:
    return lambda document: check(document.metadata.get(key, _MISSING))


def _check_of(wanted: object) -> _Check:
    """The test of one value: equality, or all operators of a mapping."""
    has_operators = isinstance(wanted, Mapping) and any(
        isinstance(key, str) and key.startswith("$") for key in wanted
    )
    if isinstance(wanted, Mapping) and not has_operators:
        _check_names(wanted)
    if not has_operators:
        return _EQUALITIES["$eq"](wanted)
    assert isinstance(wanted, Mapping)
    checks = []
    for operator, operand in wanted.items():
        make = _EQUALITIES.get(operator) or _ORDERS.get(operator)
        if make is None:
            make = _SETS.get(operator)
            if make is None:
                raise _unknown(operator, ", ".join([*_EQUALITIES, *_ORDERS, *_SETS]))
            _check_values(operator, operand)
        checks.append(make(operand))
    return lambda value: all(check(value) for check in checks)


def _check_names(wanted: Mapping[Any, Any]) -> None:
    """Refuse names of operators without their sign: as values, they match nothing."""
    names = [*_EQUALITIES, *_ORDERS, *_SETS]
    for key in wanted:
        if f"${key}" in names:
            raise ValueError(
                f"filter: got {key!r} in a dictionary of values; expected ${key}: for"
                " a value that is such a dictionary, pass a function of a Document"
            )


def _check_values(operator: str, operand: object) -> None:
    """Refuse what is no list of values, and lists without bound."""
    is_list = isinstance(operand, Sequence | set | frozenset)
    if not is_list or isinstance(operand, str | bytes):
        raise TypeError(
            f"filter: got {type(operand).__name__} for {operator}; expected a list of"
            " values"
        )
    assert isinstance(operand, Sequence | set | frozenset)
    if len(operand) > _MOST_VALUES:
        raise ValueError(
            f"filter: got {len(operand):,} values for {operator}; expected at most"
            f" {_MOST_VALUES:,}: pass a function of a Document"
        )


def _unknown(operator: object, expected: str) -> ValueError:
    return ValueError(
        f"filter: got the operator {operator!r:.60}; expected one of {expected}"
    )


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any], _Check]:
    """A test by order, which values of other types do not pass."""

    def check_against(operand: Any) -> _Check:  # noqa: ANN401 - metadata are of any type
        def check(value: Any) -> bool:  # noqa: ANN401
            if value is _MISSING or value is None:
                return False
            try:
                return bool(compare(value, operand))
            except _NOT_COMPARABLE:
                return False

        return check

    return check_against


def _equal(value: object, operand: object) -> bool:
    try:
        return bool(value == operand)
    except _NOT_COMPARABLE:
        return False


def _one_of(operand: Collection[Any]) -> _Check:
    """A test whether a value is one of these, by hash where they have one."""
    hashed: set[Any] = set()
    others: list[Any] = []
    for choice in operand:
        try:
            hashed.add(choice)
        except TypeError:
            others.append(choice)

    def check(value: Any) -> bool:  # noqa: ANN401
        compared: Iterable[Any] = others
        try:
            if value in hashed:
                return True
        except TypeError:  # it has no hash, but may be equal to one that has
            compared = operand
        return any(_equal(value, choice) for choice in compared)

    return check


def _none_of(operand: Collection[Any]) -> _Check:
    is_one = _one_of(operand)
    return lambda value: not is_one(value)


_EQUALITIES: dict[str, Callable[[Any], _Check]] = {
    "$eq": lambda operand: lambda value: _equal(value, operand),
    "$ne": lambda operand: lambda value: not _equal(value, operand),
}
_ORDERS: dict[str, Callable[[Any], _Check]] = {
    "$gt": _ordered(lambda value, operand: value > operand),
    "$gte": _ordered(lambda value, operand: value >= operand),
    "$lt": _ordered(lambda value, operand: value < operand),
    "$lte": _ordered(lambda value, operand: value <= operand),
}
_SETS: dict[str, Callable[[Any], _Check]] = {"$in": _one_of, "$nin": _none_of}
