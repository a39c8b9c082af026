"""One way to ask the language models of LlamaIndex and LangChain, and plain functions."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass

# Asked one after the other: the first that a model has is taken. The plain ones come first, because an
# asynchronous client is bound to the event loop that it was first used in.
_METHODS = ("complete", "invoke", "acomplete", "ainvoke")
_NAMES = ("model_name", "model", "model_id")


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """What answers a prompt, and the name that its replies are stored under.

    Attributes
    ----------
    name
        Replies are stored by name and prompt, so two models, or one at two temperatures, need two names.
    ask
        Called with the prompt, from several threads at once; what it returns is read by `reply_text`.
    """

    name: str
    ask: Callable[[str], object]

    def reply(self, prompt: str) -> str:
        """The model's reply to a prompt.

        Raises
        ------
        TypeError
            If the model returns anything but text.
        Exception
            Whatever the model raises.
        """
        got = self.ask(prompt)
        return reply_text(asyncio.run(_awaited(got)) if inspect.isawaitable(got) else got)


def language_model_of(model: object, name: str | None = None) -> LanguageModel:
    """What asks a model, told by the methods that it has; nothing is imported for it.

    Parameters
    ----------
    model
        A LlamaIndex ``LLM`` (``complete`` or ``acomplete``), a LangChain chat model or chain (``invoke`` or
        ``ainvoke``), a function from str to str (it may be ``async``), or a `LanguageModel`. Its settings are
        yours: the paper's temperature is 0.
    name
        The name that replies are stored under. By default the one that the model gives.

    Raises
    ------
    TypeError
        For an object that is none of these.
    ValueError
        If the model gives no name and neither do you.
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
            f"language model: a {kind} gives no name to store its replies under; "
            'give one: language_model_of(model, name="...")'
        )
    return LanguageModel(name, ask)


def reply_text(reply: object) -> str:
    """The text of a reply: a string, or what a framework wraps around one.

    LangChain's content may be a list of blocks; its text is that of the blocks that have one.

    Raises
    ------
    TypeError
        If it holds no text.
    """
    content = getattr(reply, "content", None)
    for text in (reply, getattr(reply, "text", None), content):
        if isinstance(text, str):
            return str(text)  # a plain one: LangChain's is a subclass
    if isinstance(content, list):
        texts = [block.get("text") if isinstance(block, dict) else block for block in content]
        return "".join(text for text in texts if isinstance(text, str))
    raise TypeError(f"the language model returned {type(reply).__name__}; expected text")


async def _awaited(reply: object) -> object:
    return await reply if inspect.isawaitable(reply) else reply


def _name_of(model: object) -> str:
    """The model's own name; empty if it gives none that tells it from others."""
    for attribute in _NAMES:
        if name := _stated(getattr(model, attribute, None)):
            return name
    if name := _stated(getattr(getattr(model, "metadata", None), "model_name", None)):  # LlamaIndex
        return name
    return _stated(getattr(model, "__name__", None))


def _stated(name: object) -> str:
    # "unknown" is what LlamaIndex models say that were told no name.
    return name if isinstance(name, str) and name not in ("unknown", "<lambda>") else ""
