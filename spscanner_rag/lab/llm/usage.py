"""Tokens that a language model read and wrote, as its reply reports them."""

from collections.abc import Mapping
from typing import NamedTuple

_KEYS = (
    ("input_tokens", "output_tokens"),  # LangChain's usage_metadata, Anthropic
    ("prompt_tokens", "completion_tokens"),  # OpenAI and what is compatible with it
    ("prompt_token_count", "candidates_token_count"),  # Google
    ("prompt_eval_count", "eval_count"),  # Ollama
)


class Usage(NamedTuple):
    """Tokens of prompts and of replies."""

    prompt_tokens: int = 0
    reply_tokens: int = 0

    def __add__(self, other: object) -> "Usage":
        """The sums of both, not the longer tuple."""
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(self.prompt_tokens + other.prompt_tokens, self.reply_tokens + other.reply_tokens)


def usage_of(reply: object) -> Usage | None:
    """What a reply of either framework says about its tokens; None if it says nothing.

    LangChain messages have ``usage_metadata``; LlamaIndex responses have the provider's own object in ``raw``, or
    the numbers in ``additional_kwargs``.
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
        for asked, written in _KEYS:
            prompt, answer = _part(candidate, asked), _part(candidate, written)
            if type(prompt) is int and type(answer) is int and prompt >= 0 and answer >= 0:
                return Usage(prompt, answer)
    return None


def _part(holder: object, name: str) -> object:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
