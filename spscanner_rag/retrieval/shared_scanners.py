"""The scanners that a process shares, each of which is loaded on first use."""

import os
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports torch, so at run time only where a scanner is needed
    from spscanner_rag.scanner import Scanner

LoadingArguments = tuple[object, ...]

_shared: dict[LoadingArguments, "Scanner"] = {}
_locks: dict[LoadingArguments, threading.Lock] = {}
# Keeps these objects alive, so that no other object gets the same id.
_unhashable: dict[int, object] = {}
_lock = threading.Lock()


def shared_scanner(model: str | Path | None = None, **options: Any) -> "Scanner":  # noqa: ANN401
    """`Scanner.from_pretrained`, called once per process for the same arguments.

    It is called again if it failed.
    """
    from spscanner_rag.scanner import Scanner

    options = {"device": "auto", "dtype": "auto", "backend": "auto"} | options
    named_options = [(name, _key_of(options[name])) for name in sorted(options)]
    arguments = (_key_of(_absolute(model)), *named_options)
    with _lock:
        lock = _locks.setdefault(arguments, threading.Lock())
    # A lock for these arguments, so that other scanners can load at the same time.
    with lock:
        if arguments not in _shared:
            _shared[arguments] = Scanner.from_pretrained(model, **options)
        return _shared[arguments]


def _absolute(model: str | Path | None) -> str | Path | None:
    """A local folder by its full path: the process may change its working directory."""
    if model is None:
        return None
    folder = Path(model).expanduser()
    return folder.resolve() if folder.is_dir() else model


def _key_of(value: object) -> tuple[type, Hashable]:
    # Includes the type, since 1 == True.
    try:
        hash(value)
    except TypeError:
        _unhashable[id(value)] = value
        return type(value), id(value)
    return type(value), value


def _forget_locks() -> None:
    # A lock that another thread held when the process was forked is never released in
    # the child.
    global _lock
    _lock = threading.Lock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
