"""Token counters for budgets: a callable, or the name of a tiktoken encoding."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tiktoken


_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def network_is_off() -> bool:
    """True if the environment forbids downloads, with the variables that ``huggingface_hub`` reads."""
    return any(os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} for name in _VARIABLES)


CountTokens = Callable[[str], int]

# llama-index-core ships these two files under the names that tiktoken's own cache gives them
# (the SHA-1 of the address each is fetched from).
_BUNDLED_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_environment_lock = threading.Lock()


def resolve_counter(count_tokens: CountTokens | str) -> CountTokens:
    """Turn a callable ``str -> int``, or the name of a tiktoken encoding, into a function with checked counts.

    An encoding counts special tokens as ordinary text. Raises ``ValueError`` for an unknown one, and ``OSError``
    if its file is not on this machine and cannot be downloaded, or must not be (``HF_HUB_OFFLINE=1``).
    """
    if isinstance(count_tokens, str):
        encoding = _load_encoding(count_tokens)
        return lambda text: len(encoding.encode_ordinary(text))

    def count(text: str) -> int:
        tokens: object = count_tokens(text)
        if not isinstance(tokens, int | np.integer) or isinstance(tokens, bool) or tokens < 0:
            raise ValueError(
                f"count_tokens returned {tokens!r} for a text of {len(text)} characters; "
                "expected an integer of at least 0: return the number of tokens, not the tokens"
            )
        return int(tokens)

    return count


def budget_counter(
    max_tokens: int | None, count_tokens: CountTokens | str | None, owner: str
) -> CountTokens | None:
    """The counter of a budget, None without a budget; ``ValueError``, which names ``owner``, without a counter."""
    if max_tokens is None:
        return None
    if count_tokens is None:
        raise ValueError(
            f"max_tokens: got {max_tokens}, but {owner} counts no tokens; expected count_tokens as well, "
            'for example count_tokens="o200k_base"'
        )
    return resolve_counter(count_tokens)


def check_counter(count_tokens: object) -> None:
    """Raise ``ValueError`` unless ``count_tokens`` is None, callable or a known encoding; load nothing."""
    if count_tokens is None or callable(count_tokens):
        return
    if not isinstance(count_tokens, str):
        raise ValueError(
            f"count_tokens: got {type(count_tokens).__name__}; expected a callable str -> int or the name of "
            'a tiktoken encoding: pass for example "o200k_base"'
        )
    import tiktoken

    names = tiktoken.list_encoding_names()
    if count_tokens not in names:
        raise ValueError(
            f"count_tokens: got {count_tokens!r}; expected a callable or a tiktoken encoding: "
            f"use one of {', '.join(sorted(names))}"
        )


def _load_encoding(name: str) -> "tiktoken.Encoding":
    import tiktoken

    check_counter(name)
    try:
        with _bundled_cache(name), _offline():
            return tiktoken.get_encoding(name)
    except OSError as error:  # requests' errors are OSErrors too
        reason = "HF_HUB_OFFLINE is set" if network_is_off() else type(error).__name__
        raise OSError(
            f"count_tokens={name!r}: the encoding's file could not be fetched ({reason}); "
            "go online once, set TIKTOKEN_CACHE_DIR to a folder that holds it, or pass a callable"
        ) from error


@contextmanager
def _bundled_cache(name: str) -> Iterator[None]:
    """Point tiktoken at llama-index-core's copy of an encoding, if there is one, while the encoding loads.

    Only without a cached file of its own: nothing is downloaded into, or removed from, another package's folder.
    """
    with _environment_lock:
        folder = _llama_index_cache(_BUNDLED_FILES.get(name))
        if folder is None:
            yield
            return
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            yield
        finally:
            os.environ.pop("TIKTOKEN_CACHE_DIR", None)


@contextmanager
def _offline() -> Iterator[None]:
    """Refuse tiktoken's downloads where the environment forbids them: it has no switch of its own."""
    if not network_is_off():
        yield
        return
    import tiktoken.load

    read_file = tiktoken.load.read_file

    def refuse(blobpath: str) -> bytes:
        if "://" in blobpath:
            raise ConnectionRefusedError(f"HF_HUB_OFFLINE is set, and {blobpath} is not on this machine")
        return read_file(blobpath)

    tiktoken.load.read_file = refuse
    try:
        yield
    finally:
        tiktoken.load.read_file = read_file


def _llama_index_cache(file_name: str | None) -> Path | None:
    own_cache = Path(tempfile.gettempdir(), "data-gym-cache")  # tiktoken's default
    chosen = any(variable in os.environ for variable in _CACHE_VARIABLES)
    if file_name is None or chosen or (own_cache / file_name).exists():
        return None
    # find_spec of a top-level package only looks at the search path; it does not import llama_index.
    spec = find_spec("llama_index")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root, "core", "_static", "tiktoken_cache")
        if (folder / file_name).is_file():
            return folder
    return None
