"""The rules of a selection in the signatures and the help of methods."""

import inspect
import re
from collections.abc import Callable
from textwrap import fill
from typing import Any, TypeVar

from spscanner_rag.results.selection import SELECTION_RULES

Method = TypeVar("Method", bound=Callable[..., Any])

_RULES_ENTRY = re.compile(r"^( *)\*\*rules\n(?:\1 +.*\n)+", re.MULTILINE)
"""The entry of ``**rules`` in a numpydoc section, with its description."""


def shows_rules(method: Method) -> Method:
    """Show each rule where a method has ``**rules``, for `help` and notebooks.

    Examples
    --------
    >>> class Result:
    ...     @shows_rules
    ...     def select(self, top_k=50, **rules): ...
    >>> "require_answer" in inspect.signature(Result.select).parameters
    True
    """
    signature = inspect.signature(method)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            parameters.append(parameter)
    for name, rule in SELECTION_RULES.items():
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=rule.default,
                annotation=rule.kind,
            )
        )
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    if method.__doc__ is not None:
        method.__doc__ = _RULES_ENTRY.sub(_described_rules, method.__doc__)
    return method


def _described_rules(rules_entry: re.Match[str]) -> str:
    indentation = rules_entry[1]
    lines = ""
    for name, rule in SELECTION_RULES.items():
        lines += f"{indentation}{name} : default {rule.default}\n"
        inner = indentation + "    "
        meaning = fill(rule.meaning, 88, initial_indent=inner, subsequent_indent=inner)
        lines += meaning + "\n"
    return lines
