"""What a language model returns: its text, the tokens it reports, its thoughts."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_USAGE_KEYS = (
    ("input_tokens", "output_tokens"),  # LangChain's usage_metadata, Anthropic
    ("prompt_tokens", "completion_tokens"),  # OpenAI and compatible providers
    ("prompt_token_count", "candidates_token_count"),  # Google
    ("prompt_eval_count", "eval_count"),  # Ollama
)

# Only at the start: elsewhere the model may be quoting a document.
_THOUGHTS = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)


class Usage(NamedTuple):
    """Numbers of tokens in prompts and replies.

    Examples
    --------
    >>> from spscanner_lab.llm.replies import Usage
    >>> Usage(10, 2) + Usage(5, 1)
    Usage(prompt_tokens=15, reply_tokens=3)
    """

    prompt_tokens: int = 0
    reply_tokens: int = 0

    def __add__(self, other: object) -> "Usage":
        """Add both numbers, instead of joining the tuples."""
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
        )


def reply_text(reply: object) -> str:
    """Return the text of a reply, which is a string or a framework's object.

    Text blocks are joined.
    """
    content = getattr(reply, "content", None)
    for text in (reply, getattr(reply, "text", None), content):
        if isinstance(text, str):
            return str(text)  # a plain str, since LangChain returns a subclass
    if isinstance(content, list):
        return "".join(map(_block_text, content))
    raise TypeError(
        f"the language model returned {type(reply).__name__}; expected text"
    )


def _block_text(block: object) -> str:
    """Return the text of a block of a reply, empty for an image or the like."""
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""


def usage_of(reply: object) -> Usage | None:
    """Return the tokens that a reply of either framework reports, or None.

    LangChain: ``usage_metadata``. LlamaIndex: the provider's object in ``raw``, or
    ``additional_kwargs``.
    """
    raw = getattr(reply, "raw", None)
    candidates = (
        getattr(reply, "usage_metadata", None),
        _part(raw, "usage"),
        _part(raw, "usage_metadata"),
        raw,
        getattr(reply, "additional_kwargs", None),
    )
    for candidate in candidates:
        for prompt_key, reply_key in _USAGE_KEYS:
            prompt_tokens = _part(candidate, prompt_key)
            reply_tokens = _part(candidate, reply_key)
            if _is_count(prompt_tokens) and _is_count(reply_tokens):
                return Usage(prompt_tokens, reply_tokens)  # type: ignore[arg-type]
    return None


def _part(holder: object, name: str) -> object:
    """Return an entry of a mapping, or an attribute of any other object."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def without_thoughts(reply: str) -> str:
    """Return a reply without the ``<think>`` part that a reasoning model begins with.

    The part may be closed or cut off.

    Examples
    --------
    >>> from spscanner_lab.llm.replies import without_thoughts
    >>> without_thoughts("<think>He or she?</think> ANSWER: she")
    'ANSWER: she'
    """
    return _THOUGHTS.sub("", reply).strip()
