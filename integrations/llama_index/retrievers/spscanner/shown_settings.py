"""The settings of a retriever as its ``repr`` shows them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from spscanner_rag.retrieval import SentenceSearch

_ALWAYS = ("similarity_top_k", "first_stage")


def shown_settings(
    search: SentenceSearch, others: Mapping[str, Any], constructor: Callable[..., object]
) -> str:
    """``name=value`` of a search and of other settings, where they differ from the constructor's defaults.

    Objects are shown by the names of their classes, functions by theirs; an access token is not shown.
    """
    choice, selection = search.choice, search.selection
    settings = {
        **{name: value for name, value in choice._asdict().items() if name != "token"},
        "model_kwargs": dict(choice.model_kwargs) or None,
        "similarity_top_k": selection.top_k,
        "top_k_per_document": selection.top_k_per_text,
        "threshold": selection.threshold,
        "max_tokens": selection.max_tokens,
        "count_tokens": selection.count_tokens,
        "context_sentences": selection.context,
        "order": selection.order,
        "merge_adjacent": selection.merge,
        "diversity": selection.diversity,
        "batch_size": search.batch_size,
        **others,
    }
    parameters = inspect.signature(constructor).parameters
    return ", ".join(
        f"{name}={_shown(settings[name])}"
        for name in parameters
        if name in settings and (name in _ALWAYS or settings[name] != parameters[name].default)
    )


def _shown(value: object) -> str:
    if value is None or isinstance(value, str | int | float | Mapping):
        return repr(value)
    return str(getattr(value, "__name__", f"<{type(value).__name__}>"))
