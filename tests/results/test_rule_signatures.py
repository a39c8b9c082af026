"""Methods that take rules show each of them, and type checkers know all."""

import inspect
from typing import Any, get_type_hints

import pytest

from spscanner_rag import ScanResult
from spscanner_rag.results.rule_signatures import shows_rules
from spscanner_rag.results.selection import (
    SELECTION_RULES,
    RuleArguments,
    SelectionRules,
)


def test_type_checkers_know_every_rule_with_its_type() -> None:
    assert get_type_hints(RuleArguments) == get_type_hints(SelectionRules)


@pytest.mark.parametrize("method", [ScanResult.select, ScanResult.context])
def test_signatures_end_with_the_rules(method: Any) -> None:
    parameters = inspect.signature(method).parameters
    assert list(parameters)[-len(SELECTION_RULES) :] == list(SELECTION_RULES)
    for name, rule in SELECTION_RULES.items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default == rule.default


def test_the_help_describes_each_rule_in_place_of_all() -> None:
    documentation = inspect.getdoc(ScanResult.select) or ""
    assert "**rules" not in documentation
    parameters, _, errors = documentation.partition("\nRaises\n")
    for name, rule in SELECTION_RULES.items():
        entry = parameters.partition(f"\n{name} : default {rule.default}\n")[2]
        assert " ".join(entry.split()).startswith(rule.meaning)
    assert "ValueError" in errors


def test_an_unknown_rule_is_refused_by_name() -> None:
    result = ScanResult("x", "One. Two.", [0, 5], [4, 9], [1.0, 2.0])
    with pytest.raises(TypeError, match="least_word"):
        result.select(least_word=2)  # type: ignore[call-arg]


def test_a_method_without_help_is_left_without() -> None:
    def select(**rules: Any) -> None: ...

    assert shows_rules(select).__doc__ is None
