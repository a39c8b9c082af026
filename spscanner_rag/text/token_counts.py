"""Token counters for budgets: a callable, or the name of a tiktoken encoding."""

import hashlib
import os
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tiktoken


_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def network_is_off() -> bool:
    """True if the environment forbids downloads, with the variables that ``huggingface_hub`` reads."""
    return any(
        os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"}
        for name in _VARIABLES
    )


CountTokens = Callable[[str], int]

_patching = threading.Lock()


def resolve_counter(count_tokens: CountTokens | str) -> CountTokens:
    """Turn a callable ``str -> int``, or the name of a tiktoken encoding, into a function with checked counts.

    An encoding counts special tokens as ordinary text. Raises ``ValueError`` for an
    unknown one, and ``OSError`` if its file is not on this machine and cannot be
    downloaded, or must not be (``HF_HUB_OFFLINE=1``).
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
    """The counter of a budget.

    None without a budget; ``ValueError``, which names ``owner``, without a counter.
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
    """Raise ``ValueError`` unless ``count_tokens`` is None, callable or a known encoding; load nothing."""
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
    """The encoding, from tiktoken's cache, llama-index-core's copy or, if that is allowed, the network."""
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
        with (
            _patching,
            patch.object(tiktoken.load, "read_file", read_file),
        ):  # there is no option for either
            return tiktoken.get_encoding(name)
    except OSError as error:  # requests' errors are OSErrors too
        reason = "HF_HUB_OFFLINE is set" if network_is_off() else type(error).__name__
        raise OSError(
            f"count_tokens={name!r}: the encoding's file could not be fetched"
            f" ({reason}); go online once, set TIKTOKEN_CACHE_DIR to a folder that"
            " holds it, or pass a callable"
        ) from error


def _llama_index_copy(address: str) -> Path | None:
    """The file that llama-index-core ships for an address, under the name that tiktoken's own cache gives it."""
    name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    # find_spec of a top-level package only looks at the search path; it does not import
    # llama_index.
    spec = find_spec("llama_index")
    roots = (spec.submodule_search_locations or ()) if spec else ()
    copies = (Path(root, "core", "_static", "tiktoken_cache", name) for root in roots)
    return next(filter(Path.is_file, copies), None)
