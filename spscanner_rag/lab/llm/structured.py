"""Models that keep to a JSON schema: asking them through their framework."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from spscanner_rag.lab.llm.usage import usage_of

_TYPES = {"string": str, "integer": int}

Structured = Callable[[dict[str, Any]], Callable[[str], object]]
"""From a JSON schema to a function that sends a prompt; `reply_text` reads what it returns."""


def structured_of(model: object) -> Structured | None:
    """How a model is asked for JSON; None if it does not support that.

    LangChain: a chat model with tools, through ``with_structured_output``. LlamaIndex: an LLM whose metadata says
    that it calls functions, through ``as_structured_llm``.
    """
    metadata = getattr(model, "metadata", None)
    if getattr(metadata, "is_function_calling_model", False) is True:
        as_structured = getattr(model, "as_structured_llm", None)
        return _llama_index(as_structured) if callable(as_structured) else None
    with_output = getattr(model, "with_structured_output", None)
    if callable(with_output) and _binds_tools(model):
        return _langchain(with_output)
    return None


def _binds_tools(model: object) -> bool:
    """Whether a LangChain model has its own way to bind tools; the base class only raises an error."""
    own = getattr(type(model), "bind_tools", None)
    return own is not None and not getattr(own, "__module__", "").startswith("langchain_core.language_models")


def _langchain(with_output: Callable[..., Any]) -> Structured:
    def for_schema(schema: dict[str, Any]) -> Callable[[str], object]:
        runnable = with_output(schema, include_raw=True)

        def ask(prompt: str) -> object:
            got = runnable.invoke(prompt)
            raw, parsed = got["raw"], got["parsed"]
            text = json.dumps(parsed) if isinstance(parsed, dict) else _text(raw)
            return SimpleNamespace(text=text, usage_metadata=getattr(raw, "usage_metadata", None))

        return ask

    return for_schema


def _llama_index(as_structured: Callable[[type[Any]], Any]) -> Structured:
    def for_schema(schema: dict[str, Any]) -> Callable[[str], object]:
        llm = as_structured(_class_of(schema))

        def ask(prompt: str) -> object:
            got = llm.complete(prompt)
            used = usage_of(got)  # often None: the provider's own object is replaced by the parsed one
            return SimpleNamespace(text=got.text, raw=None if used is None else used._asdict())

        return ask

    return for_schema


def _class_of(schema: dict[str, Any]) -> type[Any]:
    """A class of pydantic, which both frameworks bring, for a schema of strings, numbers, lists and objects."""
    from pydantic import create_model

    fields = {name: (_type_of(name, kind), ...) for name, kind in schema["properties"].items()}
    made: type[Any] = create_model(schema.get("title", "Reply"), **fields)  # type: ignore[call-overload]
    return made


def _type_of(name: str, kind: dict[str, Any]) -> Any:  # noqa: ANN401 - a type
    if kind["type"] == "array":
        return list[_type_of(name, kind["items"])]  # type: ignore[misc]
    if kind["type"] == "object":
        return _class_of({"title": name, **kind})
    return _TYPES[kind["type"]]


def _text(message: object) -> str:
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else json.dumps(content)
