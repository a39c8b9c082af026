"""Language models by a name on the command line, through whichever framework is installed."""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from spscanner_rag.lab.llm.language_models import LanguageModel, language_model_of

FORMS = (
    "PROVIDER:MODEL (openai, anthropic, google, mistral or ollama), llama-index:PROVIDER:MODEL, "
    "langchain:PROVIDER:MODEL, or FILE.py:NAME, a model or a function that returns one"
)


class _Class(NamedTuple):
    """Where a framework has the class of a provider."""

    module: str
    name: str

    @property
    def package(self) -> str:
        return self.module.replace(".", "-").replace("_", "-")


_CLASSES = {
    "openai": (_Class("llama_index.llms.openai", "OpenAI"), _Class("langchain_openai", "ChatOpenAI")),
    "anthropic": (
        _Class("llama_index.llms.anthropic", "Anthropic"),
        _Class("langchain_anthropic", "ChatAnthropic"),
    ),
    "google": (
        _Class("llama_index.llms.google_genai", "GoogleGenAI"),
        _Class("langchain_google_genai", "ChatGoogleGenerativeAI"),
    ),
    "mistral": (
        _Class("llama_index.llms.mistralai", "MistralAI"),
        _Class("langchain_mistralai", "ChatMistralAI"),
    ),
    "ollama": (_Class("llama_index.llms.ollama", "Ollama"), _Class("langchain_ollama", "ChatOllama")),
}
_FRAMEWORKS = ("llama-index", "langchain")


def named_model(name: str) -> tuple[object, LanguageModel]:
    """The model with a name, as its framework has it, and as a `LanguageModel`. Its temperature is 0.

    Raises
    ------
    ValueError
        For a name without one of the forms in `FORMS`, and a file without that object.
    ImportError
        If the provider's package is not installed; the message says how to install it.
    """
    first, _, rest = name.partition(":")
    if first.endswith(".py") and rest:
        made = _object_in(Path(first), rest)
        return made, language_model_of(made)
    chosen: tuple[str, ...] = _FRAMEWORKS
    if first in _FRAMEWORKS:
        chosen = (first,)
        first, _, rest = rest.partition(":")
    if first not in _CLASSES or not rest:
        raise ValueError(f"language model {name!r:.100}: expected {FORMS}")
    classes = [
        entry for framework, entry in zip(_FRAMEWORKS, _CLASSES[first], strict=True) if framework in chosen
    ]
    for entry in classes:
        if _is_there(entry.module):
            made = getattr(import_module(entry.module), entry.name)(model=rest, temperature=0.0)
            return made, language_model_of(made, rest)
    installs = " or ".join(f"`pip install {entry.package}`" for entry in classes)
    raise ImportError(f"language model {name!r:.100}: the package of this provider is missing: {installs}")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


def _object_in(path: Path, name: str) -> object:
    """An object of a Python file; what a function without arguments returns, if it is one."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected a Python file with {name!r}")
    found = getattr(_module(path), name, None)
    if found is None:
        raise ValueError(f"{path}: has no {name!r}; expected a model, or a function that returns one")
    if callable(found) and getattr(getattr(found, "__code__", None), "co_argcount", None) == 0:
        return found()
    return found


def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"spscanner_model_{path.stem}", path)
    assert spec is not None  # the file ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
