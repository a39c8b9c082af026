"""Token counters for budgets: a callable, or the name of a tiktoken encoding."""

import hashlib
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spscanner_rag.text.offline import network_is_off

if TYPE_CHECKING:
    import tiktoken

CountTokens = Callable[[str], int]

# One thread at a time replaces how tiktoken reads its files.
_patching = threading.Lock()


def resolve_counter(count_tokens: CountTokens | str) -> CountTokens:
    """Turn a callable, or the name of a tiktoken encoding, into a token counter.

    The counter checks what the callable, ``str -> int``, returns. An encoding counts
    special tokens as ordinary text. Raises ``ValueError`` for an unknown encoding, and
    ``OSError`` if its file is not on this machine and cannot be downloaded, or must not
    be (``HF_HUB_OFFLINE=1``).

    Examples
    --------
    >>> count = resolve_counter(lambda text: len(text.split()))
    >>> count("three short words")
    3
    """
    if isinstance(count_tokens, str):
        encoding = _load_encoding(count_tokens)
        return lambda text: len(encoding.encode_ordinary(text))

    def count(text: str) -> int:
        tokens: object = count_tokens(text)
        if (
            not isinstance(tokens, int | np.integer)
            or isinstance(tokens, bool)
            or tokens < 0
        ):
            raise ValueError(
                f"count_tokens returned {tokens!r} for a text of {len(text)}"
                " characters; expected an integer of at least 0: return the number of"
                " tokens, not the tokens"
            )
        return int(tokens)

    return count


def budget_counter(
    max_tokens: int | None, count_tokens: CountTokens | str | None, owner: str
) -> CountTokens | None:
    """The counter of a budget, or None without a budget.

    Without a counter it raises ``ValueError``, which names ``owner``.
    """
    if max_tokens is None:
        return None
    if count_tokens is None:
        raise ValueError(
            f"max_tokens: got {max_tokens}, but {owner} counts no tokens; expected"
            ' count_tokens as well, for example count_tokens="o200k_base"'
        )
    return resolve_counter(count_tokens)


def check_counter(count_tokens: object) -> None:
    """Raise ``ValueError`` unless ``count_tokens`` is valid, and load nothing.

    Valid are None, a callable, and the name of an encoding.
    """
    if count_tokens is None or callable(count_tokens):
        return
    if not isinstance(count_tokens, str):
        raise ValueError(
            f"count_tokens: got {type(count_tokens).__name__}; expected a callable str"
            ' -> int or the name of a tiktoken encoding: pass for example "o200k_base"'
        )
    import tiktoken

    names = tiktoken.list_encoding_names()
    if count_tokens not in names:
        raise ValueError(
            f"count_tokens: got {count_tokens!r}; expected a callable or a tiktoken"
            f" encoding: use one of {', '.join(sorted(names))}"
        )


def _load_encoding(name: str) -> "tiktoken.Encoding":
    """Load an encoding from this machine or, if that is allowed, from the network.

    On this machine it may be in tiktoken's cache or in llama-index-core's copy.
    """
    from unittest.mock import patch

    import tiktoken.load

    check_counter(name)
    fetch = tiktoken.load.read_file

    def read_file(address: str) -> bytes:
        if (copy := _llama_index_copy(address)) is not None:
            return copy.read_bytes()
        if network_is_off() and "://" in address:
            raise ConnectionRefusedError(
                f"HF_HUB_OFFLINE is set, and {address} is not on this machine"
            )
        return fetch(address)

    try:
        # tiktoken has no option for either.
        with _patching, patch.object(tiktoken.load, "read_file", read_file):
            return tiktoken.get_encoding(name)
    except OSError as error:  # The errors of `requests` are OSErrors too.
        reason = "HF_HUB_OFFLINE is set" if network_is_off() else type(error).__name__
        raise OSError(
            f"count_tokens={name!r}: the encoding's file could not be fetched"
            f" ({reason}); go online once, set TIKTOKEN_CACHE_DIR to a folder that"
            " holds it, or pass a callable"
        ) from error


def _llama_index_copy(address: str) -> Path | None:
    """The file that llama-index-core ships for an address.

    It has the name that tiktoken's own cache gives it.
    """
    name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    # find_spec of a top-level package only looks at the search path; it does not import
    # llama_index.
    package = find_spec("llama_index")
    if package is None:
        return None
    for root in package.submodule_search_locations or ():
        copy = Path(root, "core", "_static", "tiktoken_cache", name)
        if copy.is_file():
            return copy
    return None
