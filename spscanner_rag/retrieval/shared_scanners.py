"""The choice of a scorer, and the scanners that a process shares.

Each is loaded once, on first use.
"""

import inspect
import os
import threading
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from spscanner_rag.scorers import Scorer, check_scorer

if TYPE_CHECKING:
    from spscanner_rag.scanner import (
        Scanner,  # imports torch, so at run time only where a scanner is needed
    )

_shared: dict[tuple[object, ...], "Scanner"] = {}
_locks: dict[tuple[object, ...], threading.Lock] = {}
_unhashable: dict[
    int, object
] = {}  # keeps these objects alive, so that no other object gets the same id
_lock = threading.Lock()


class HiddenToken:
    """An access token that stays out of representations, pickles and logs.

    After unpickling it has no value.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:  # noqa: ANN401 - checked where it is used
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
    """The arguments without ``token``, and the token."""
    options = dict(model_kwargs)
    token = options.pop("token", None)
    return options, token if isinstance(token, HiddenToken) else HiddenToken(token)


def hide_token(fields: object) -> object:
    """Hide the token in a pydantic class's fields, before validation, since validation errors show the input."""
    if not isinstance(fields, Mapping) or "model_kwargs" not in fields:
        return fields
    given = fields["model_kwargs"] or {}
    if isinstance(given, Mapping):
        options, token = split_token(given)
        given = options if token.value is None else {**options, "token": token}
    return {
        **fields,
        "model_kwargs": given if isinstance(given, Mapping) else HiddenToken(given),
    }


class ScorerChoice(NamedTuple):
    """The scorer that an integration uses: a model and the arguments to load it, or a loaded scanner or scorer."""

    model: str | Path | None = None
    device: str = "auto"
    dtype: str = "auto"
    backend: str = "auto"
    model_kwargs: Mapping[str, Any] = {}  # without the token
    token: HiddenToken = HiddenToken()
    scanner: "Scanner | None" = None  # instead of a model
    scorer: Scorer | None = None  # instead of a model

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Read the options of a framework class.

        ``ValueError`` or ``TypeError`` for unusable ones.
        """
        model_kwargs, token = split_token(options["model_kwargs"] or {})
        others = {
            name: options[name]
            for name in cls._fields
            if name not in ("model_kwargs", "token")
        }
        choice = cls(**others, model_kwargs=model_kwargs, token=token)
        scanner, scorer = choice.scanner, choice.scorer
        given = [
            name for name in ("model", "scanner", "scorer") if options[name] is not None
        ]
        if len(given) > 1:
            raise ValueError(
                f"got {' and '.join(given)}; expected at most one of model, scanner and"
                " scorer"
            )
        if scorer is not None:
            check_scorer(scorer)
        if scanner is not None or model_kwargs:
            from spscanner_rag.scanner import Scanner

            if scanner is not None and not isinstance(scanner, Scanner):
                raise TypeError(
                    f"scanner is {type(scanner).__name__}; expected a"
                    " spscanner_rag.Scanner (pass anything else that scores units as"
                    " scorer)"
                )
            # Raises `TypeError` for an argument that is unknown or given twice.
            own = {
                name: options[name] for name in ("model", "device", "dtype", "backend")
            }
            inspect.signature(Scanner.from_pretrained).bind_partial(
                **own, **model_kwargs
            )
        return choice

    @property
    def on_cpu(self) -> bool:
        """True if the scorer is a scanner that computes on a CPU; loads nothing."""
        if self.scorer is not None:
            return False
        if self.scanner is not None:
            return self.scanner.device.type == "cpu"
        from spscanner_rag.scan.devices import choose

        return choose(self.device, "float32").device.type == "cpu"

    @property
    def name(self) -> str:
        """Its name in traces."""
        if self.scorer is not None:
            return type(self.scorer).__name__
        if self.scanner is not None:
            return str(self.scanner.checkpoint.source)
        return "default" if self.model is None else str(self.model)

    def resolve(self) -> Scorer:
        """The scorer. The first call in a process for a given model loads it."""
        if self.scorer is not None:
            return self.scorer
        if self.scanner is not None:
            return self.scanner
        options = dict(self.model_kwargs)
        if self.token.value is not None:
            options["token"] = self.token.value
        return shared_scanner(
            self.model,
            device=self.device,
            dtype=self.dtype,
            backend=self.backend,
            **options,
        )

    def __reduce__(self) -> tuple[type["ScorerChoice"], tuple[object, ...]]:
        # Instead of a loaded scanner, a pickle has the arguments to load it.
        again = (
            {}
            if self.scanner is None
            else {"scanner": None, **loading_options(self.scanner)}
        )
        return type(self), tuple(self._replace(**again))


def loading_options(scanner: "Scanner") -> dict[str, Any]:
    """Options that load a scanner again, from the Hub at the same commit.

    A custom segmenter is kept as it is.
    """
    segmenter, checkpoint = scanner.segmenter, scanner.checkpoint
    local = checkpoint.folder == Path(checkpoint.source).expanduser()
    bundled = not local and checkpoint.source == "default"
    own = type(segmenter).__module__.startswith("spscanner_rag.text.")
    options = {
        "window_tokens": scanner.window_tokens,
        "segment_tokens": scanner.segment_tokens,
        "segmenter": segmenter.name if own else segmenter,
        "encoder": checkpoint.encoder,
    }
    return {
        "model": None if bundled else checkpoint.source,
        "device": str(scanner.device),
        "dtype": str(scanner.dtype).removeprefix("torch."),
        "model_kwargs": (
            options
            if local or bundled
            else {**options, "revision": checkpoint.folder.name}
        ),
    }


def shared_scanner(model: str | Path | None = None, **options: Any) -> "Scanner":  # noqa: ANN401
    """`Scanner.from_pretrained`, called once per process for the same arguments, and again only if it failed."""
    from spscanner_rag.scanner import Scanner

    options = {"device": "auto", "dtype": "auto", "backend": "auto"} | options
    place = model
    if model is not None and (folder := Path(model).expanduser()).is_dir():
        place = folder.resolve()  # the process may change its working directory
    key = (
        _key_of(place),
        *((name, _key_of(options[name])) for name in sorted(options)),
    )
    with _lock:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:  # one per key, so that other scanners can load at the same time
        if key not in _shared:
            _shared[key] = Scanner.from_pretrained(model, **options)
        return _shared[key]


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
