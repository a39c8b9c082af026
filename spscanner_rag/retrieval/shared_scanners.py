"""Scanners by the arguments that they are loaded with, so that a process loads each once and only when used."""

import inspect
import os
import threading
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer

_FURTHER_ARGUMENTS = set(inspect.signature(Scanner.from_pretrained).parameters) - {
    "model",
    "device",
    "dtype",
    "backend",
}

_shared: dict[tuple[object, ...], Scanner] = {}
_locks: dict[tuple[object, ...], threading.Lock] = {}
_lock = threading.Lock()


class HiddenToken:
    """An access token that stays out of representations, copies to disk and logs.

    Parameters
    ----------
    value : str, bool or None
        As for `Scanner.from_pretrained`. A pickled one comes back without it.
    """

    __slots__ = ("value",)

    def __init__(self, value: str | bool | None = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "HiddenToken(...)" if self.value else "HiddenToken()"

    def __reduce__(self) -> tuple[type["HiddenToken"], tuple[()]]:
        return HiddenToken, ()

    def __copy__(self) -> "HiddenToken":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "HiddenToken":
        return self


def split_token(model_kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], HiddenToken]:
    """The arguments without ``token``, and that."""
    options = dict(model_kwargs)
    token = options.pop("token", None)
    return options, token if isinstance(token, HiddenToken) else HiddenToken(token)


class ScorerChoice(NamedTuple):
    """Which scorer an integration was asked to use; ``resolve`` loads it, if it must be.

    Attributes
    ----------
    model, device, dtype, backend
        As for `Scanner.from_pretrained`.
    model_kwargs, token
        Its other arguments, as `split_token` makes them.
    scanner
        A scanner that is loaded already, instead.
    scorer
        Any scorer, instead.
    """

    model: str | Path | None = None
    device: str = "auto"
    dtype: str = "auto"
    backend: str = "auto"
    model_kwargs: Mapping[str, Any] = {}
    token: HiddenToken = HiddenToken()
    scanner: Scanner | None = None
    scorer: Scorer | None = None

    def check(self) -> None:
        """Raise ``ValueError`` for two answers at once or unknown options, ``TypeError`` for what cannot score."""
        given = [name for name in ("model", "scanner", "scorer") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"got {' and '.join(given)}; expected at most one of model, scanner and scorer")
        if self.scanner is not None and not isinstance(self.scanner, Scanner):
            raise TypeError(
                f"scanner is {type(self.scanner).__name__}; expected a spscanner_rag.Scanner (pass anything "
                "else that scores units as scorer)"
            )
        if self.scorer is not None and (isinstance(self.scorer, type) or not isinstance(self.scorer, Scorer)):
            raise TypeError(
                f"scorer is {type(self.scorer).__name__}; expected an object with score_units(query, text, units)"
            )
        unknown = set(self.model_kwargs) - _FURTHER_ARGUMENTS
        if unknown:
            raise ValueError(
                f"model_kwargs: got {', '.join(sorted(map(repr, unknown)))}; expected further arguments of "
                f"Scanner.from_pretrained: {', '.join(sorted(_FURTHER_ARGUMENTS))}"
            )

    @property
    def name(self) -> str:
        """What to call it in traces."""
        if self.scorer is not None:
            return type(self.scorer).__name__
        if self.scanner is not None:
            return str(self.scanner.checkpoint.source)
        return "default" if self.model is None else str(self.model)

    def resolve(self) -> Scorer:
        """The scorer; a scanner is loaded by the first call in the process that asks for it.

        Raises
        ------
        CheckpointError, ValueError
            As `Scanner.from_pretrained`.
        """
        if self.scorer is not None:
            return self.scorer
        if self.scanner is not None:
            return self.scanner
        options = dict(self.model_kwargs)
        if self.token.value is not None:
            options["token"] = self.token.value
        return shared_scanner(
            self.model, device=self.device, dtype=self.dtype, backend=self.backend, **options
        )


def shared_scanner(
    model: str | Path | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    backend: str = "auto",
    **model_kwargs: Any,  # noqa: ANN401 - those of from_pretrained
) -> Scanner:
    """`Scanner.from_pretrained`, loaded once in a process for the same arguments.

    Parameters
    ----------
    model, device, dtype, backend, **model_kwargs
        As for `Scanner.from_pretrained`.

    Raises
    ------
    CheckpointError, ValueError
        As `Scanner.from_pretrained`; what failed is tried again by the next call.
    """
    options: dict[str, Any] = {"device": device, "dtype": dtype, "backend": backend, **model_kwargs}
    key = (_key_of(_place(model)), *((name, _key_of(options[name])) for name in sorted(options)))
    with _lock:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:  # of this key: others load beside it
        if key not in _shared:
            _shared[key] = Scanner.from_pretrained(model, **options)
        return _shared[key]


def forget_shared_scanners() -> None:
    """Let go of the scanners that `shared_scanner` keeps; whoever holds one may go on using it."""
    with _lock:
        _shared.clear()
        _locks.clear()  # its keys keep arguments alive


def _place(model: str | Path | None) -> str | Path | None:
    """A local folder by its full path, since a process may change its working folder; else as given."""
    if model is None:
        return None
    folder = Path(model).expanduser()
    return folder.resolve() if folder.is_dir() else model


class _Same(NamedTuple):
    """Stands for a value that cannot be hashed: equal to itself only, and kept alive."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key_of(value: object) -> tuple[type, Hashable]:
    # With the type: 1 and True are equal, but do not mean the same.
    try:
        hash(value)
    except TypeError:
        return type(value), _Same(value)
    return type(value), value


def _forget_locks() -> None:
    # One that another thread of the parent held is never released in a fork.
    global _lock
    _lock = threading.Lock()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
