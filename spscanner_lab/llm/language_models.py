"""One interface to models of LlamaIndex and LangChain, and to plain functions."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from runpy import run_path

FORMS = (
    "PROVIDER:MODEL (openai, anthropic, google, mistral or ollama),"
    " llama-index:PROVIDER:MODEL, langchain:PROVIDER:MODEL, or FILE.py:NAME, a model or"
    " a function that returns one"
)

_METHODS = ("complete", "invoke")  # LlamaIndex's and LangChain's
_NAMES = ("model_name", "model", "model_id")

_FRAMEWORKS = ("llama-index", "langchain")
_CLASSES = {  # module and class of a provider in each framework
    "openai": (
        ("llama_index.llms.openai", "OpenAI"),
        ("langchain_openai", "ChatOpenAI"),
    ),
    "anthropic": (
        ("llama_index.llms.anthropic", "Anthropic"),
        ("langchain_anthropic", "ChatAnthropic"),
    ),
    "google": (
        ("llama_index.llms.google_genai", "GoogleGenAI"),
        ("langchain_google_genai", "ChatGoogleGenerativeAI"),
    ),
    "mistral": (
        ("llama_index.llms.mistralai", "MistralAI"),
        ("langchain_mistralai", "ChatMistralAI"),
    ),
    "ollama": (
        ("llama_index.llms.ollama", "Ollama"),
        ("langchain_ollama", "ChatOllama"),
    ),
}


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A thread-safe function from a prompt to a reply, and the model's name.

    Replies are stored under the name, so two models, or one model at two temperatures,
    need two names.
    """

    name: str
    ask: Callable[[str], object]


def language_model_of(model: object, name: str | None = None) -> LanguageModel:
    """Wrap a model, recognized by its methods, without importing a framework.

    It may be a LlamaIndex ``LLM`` (``complete``), a LangChain chat model or chain
    (``invoke``), or a function from str to str. Set its temperature yourself: the
    script of the paper's authors uses 0; the paper states none. ``ValueError`` if it
    has no name and none is given.

    Examples
    --------
    >>> from spscanner_lab.llm.language_models import language_model_of
    >>> model = language_model_of(str.upper, name="shouting")
    >>> model.ask("no")
    'NO'
    """
    if isinstance(model, LanguageModel):
        return model
    ask = _asking_method(model)
    if isinstance(model, type):
        raise _not_a_model(f"the class {model.__name__}")
    kind = type(model).__name__
    if ask is None:
        raise _not_a_model(f"an object of type {kind}")
    if name is None:
        name = _name_of(model)
    if not name.strip():
        raise ValueError(
            f"language model: a {kind} has no name to store its replies under; "
            'expected one: language_model_of(model, name="...")'
        )
    return LanguageModel(name, ask)


def _not_a_model(got: str) -> TypeError:
    return TypeError(
        f"language model: got {got}; expected a LlamaIndex LLM, a LangChain chat model"
        " or a function from str to str"
    )


def _asking_method(model: object) -> Callable[[str], object] | None:
    """Return the method of either framework, or the model itself if it is callable."""
    for method_name in _METHODS:
        method = getattr(model, method_name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    return model if callable(model) else None


def named_model(name: str) -> LanguageModel:
    """Load a model by its name on the command line (`FORMS`), at temperature 0.

    If the provider's package is missing, ``ImportError`` says how to install it.
    """
    first, _, model_name = name.partition(":")
    if first.endswith(".py") and model_name:
        return language_model_of(_object_in(Path(first), model_name))
    frameworks: tuple[str, ...] = _FRAMEWORKS
    if first in _FRAMEWORKS:
        frameworks = (first,)
        first, _, model_name = model_name.partition(":")
    if first not in _CLASSES or not model_name:
        raise ValueError(f"language model {name!r:.100}: expected {FORMS}")
    class_by_framework = dict(zip(_FRAMEWORKS, _CLASSES[first], strict=True))
    candidates = [class_by_framework[framework] for framework in frameworks]
    for module, class_name in candidates:
        try:
            model_class = getattr(import_module(module), class_name)
        except ModuleNotFoundError as error:
            if not f"{module}.".startswith(f"{error.name}."):
                raise  # a dependency of the provider's package is missing
            continue
        model = model_class(model=model_name, temperature=0.0)
        return language_model_of(model, model_name)
    installs = []
    for module, _ in candidates:
        package = module.replace(".", "-").replace("_", "-")
        installs.append(f"`pip install {package}`")
    raise ImportError(
        f"language model {name!r:.100}: the package of this provider is missing:"
        f" {' or '.join(installs)}"
    )


def _name_of(model: object) -> str:
    """Return the model's name, or an empty string if none identifies it."""
    names = [getattr(model, attribute, None) for attribute in _NAMES]
    names.append(getattr(getattr(model, "metadata", None), "model_name", None))
    names.append(getattr(model, "__name__", None))
    for name in names:
        # LlamaIndex models without a name report "unknown".
        if isinstance(name, str) and name not in ("", "unknown", "<lambda>"):
            return name
    return ""


def _object_in(path: Path, name: str) -> object:
    """Run a Python file and return its model of this name, or what that returns."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file; expected a Python file with {name!r}")
    namespace = run_path(str(path), run_name=f"spscanner_model_{path.stem}")
    model = namespace.get(name)
    if model is None:
        raise ValueError(
            f"{path}: has no {name!r}; expected a model, or a function that returns one"
        )
    arguments = getattr(getattr(model, "__code__", None), "co_argcount", None)
    if callable(model) and arguments == 0:
        return model()
    return model
