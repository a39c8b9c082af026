"""One interface to the language models of LlamaIndex and LangChain, and to plain functions."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass

# The first method that a model has is called. Synchronous ones come first, because an asynchronous client is
# bound to the event loop in which it was first used.
_METHODS = ("complete", "invoke", "acomplete", "ainvoke")
_NAMES = ("model_name", "model", "model_id")


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A callable that answers prompts, and the name under which its replies are stored.

    Attributes
    ----------
    name
        Replies are stored by name and prompt, so two models, or one at two temperatures, need two names.
    ask
        Called with the prompt, possibly from several threads at once. `reply_text` reads what it returns.
    """

    name: str
    ask: Callable[[str], object]

    def __call__(self, prompt: str) -> str:
        """Return the model's reply to a prompt; raises ``TypeError`` if it is not text."""
        got = self.ask(prompt)
        return reply_text(asyncio.run(_awaited(got)) if inspect.isawaitable(got) else got)


def language_model_of(model: object, name: str | None = None) -> LanguageModel:
    """Wrap a model, which is recognized by its methods; no framework is imported.

    Parameters
    ----------
    model
        A LlamaIndex ``LLM`` (``complete`` or ``acomplete``), a LangChain chat model or chain (``invoke`` or
        ``ainvoke``), a function from str to str (it may be ``async``), or a `LanguageModel`. Set its temperature
        yourself: the script of the paper's authors uses 0; the paper gives none.
    name
        The name under which replies are stored. Default: the model's own.

    Raises
    ------
    TypeError
        For an object that is none of these.
    ValueError
        If the model has no name and none is given.
    """
    if isinstance(model, LanguageModel):
        return model if name is None else LanguageModel(name, model.ask)
    kind = model.__name__ if isinstance(model, type) else type(model).__name__
    methods = (getattr(model, method, None) for method in _METHODS)
    ask = next((method for method in methods if callable(method)), None)
    if ask is None and callable(model):
        ask = model
    if ask is None or isinstance(model, type):
        raise TypeError(
            f"language model: got {'the class' if isinstance(model, type) else 'an object of type'} {kind}; "
            "expected a LlamaIndex LLM, a LangChain chat model or a function from str to str"
        )
    name = name if name is not None else _name_of(model)
    if not name.strip():
        raise ValueError(
            f"language model: a {kind} has no name to store its replies under; "
            'expected one: language_model_of(model, name="...")'
        )
    return LanguageModel(name, ask)


def reply_text(reply: object) -> str:
    """The text of a reply: a string, or an object of a framework that contains one.

    The content of a LangChain message may be a list of blocks; the text blocks are joined. Raises ``TypeError``
    for an object without text.
    """
    content = getattr(reply, "content", None)
    for text in (reply, getattr(reply, "text", None), content):
        if isinstance(text, str):
            return str(text)  # a plain str: LangChain returns a subclass
    if isinstance(content, list):
        texts = [block.get("text") if isinstance(block, dict) else block for block in content]
        return "".join(text for text in texts if isinstance(text, str))
    raise TypeError(f"the language model returned {type(reply).__name__}; expected text")


async def _awaited(reply: object) -> object:
    return await reply if inspect.isawaitable(reply) else reply


def _name_of(model: object) -> str:
    """The model's own name; empty if it has none that identifies it."""
    for attribute in _NAMES:
        if name := _stated(getattr(model, attribute, None)):
            return name
    if name := _stated(getattr(getattr(model, "metadata", None), "model_name", None)):  # LlamaIndex
        return name
    return _stated(getattr(model, "__name__", None))


def _stated(name: object) -> str:
    # LlamaIndex models without a name report "unknown".
    return name if isinstance(name, str) and name not in ("unknown", "<lambda>") else ""
