"""The options of a selection that an agent has, made from `SELECTION_OPTIONS`."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, TypeVar

from pydantic import Field

from spscanner_rag.apps.bounded_patterns import BoundedPatterns, Patterns
from spscanner_rag.results import Selection
from spscanner_rag.results.selection import SELECTION_OPTIONS

T = TypeVar("T")

LEFT_OUT = {
    "top_k": "an answer has as many passages as fit, and a cursor to the others",
    "top_k_per_text": "an answer has as many passages as fit",
    "max_tokens": "it is the budget of an answer with its places, from 500 to 20,000",
    "count_tokens": "answers are counted by the checkpoint's tokenizer",
    "context": "read_passage has the neighbours",
    "order": "the cursor needs the best first",
    "merge": "a passage's id is that of a sentence",
    "diversity": "the cursor leads to all sentences, so none is passed over",
}
"""The options that a tool does not have as the others do, each with the reason."""


def with_selection_options(tool: Callable[..., T]) -> Callable[..., T]:
    """Let a tool take every other option of a selection by its name.

    The tool itself has them in its parameter ``options``.
    """
    signature = inspect.signature(tool, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name != "options":
            parameters.append(parameter)
    for name, declared in SELECTION_OPTIONS.items():
        if name in LEFT_OUT:
            continue
        kind: Any = declared.plain_kind
        if name == "always_keep":
            kind = Patterns | None
        bounds = Field(
            ge=declared.lowest, le=declared.highest, description=declared.meaning
        )
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=declared.default,
                annotation=Annotated[kind, bounds],
            )
        )

    @wraps(tool)
    def taking(**arguments: Any) -> T:  # noqa: ANN401 - as the signature says
        options: dict[str, Any] = {}
        for name in SELECTION_OPTIONS:
            if name in arguments and name not in LEFT_OUT:
                options[name] = arguments.pop(name)
        return tool(**arguments, options=options)

    with_options = signature.replace(parameters=parameters)
    taking.__signature__ = with_options  # type: ignore[attr-defined]
    return taking


def selection_of(options: Mapping[str, Any]) -> Selection:
    """The selection of an answer: all that is allowed, the best first."""
    values = dict(options)
    if values.get("always_keep") is not None:
        values["always_keep"] = BoundedPatterns(values["always_keep"])
    return Selection(top_k=None, order="score", **values)
