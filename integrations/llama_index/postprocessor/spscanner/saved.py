"""What a dictionary of settings holds in place of objects that live in one process only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_OBJECT = "object"


def object_name(value: object) -> dict[str, str]:
    """Stands for an object that has to be given again."""
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {_OBJECT: f"{kind.__module__}.{getattr(kind, '__qualname__', kind)}"}


def refuse_object_name(name: str, value: object) -> None:
    """Raise ``ValueError`` if `object_name` stands where the object should."""
    if isinstance(value, Mapping) and set(value) == {_OBJECT}:
        raise ValueError(
            f"{name}: got the name of {value[_OBJECT]}, which was not saved; expected the object: "
            f"from_dict(data, {name}=...)"
        )


def plain_kwargs(model_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Scanner.from_pretrained` without the token; paths as strings, objects by their names."""
    return {name: _plain(value) for name, value in model_kwargs.items() if name != "token"}


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | Mapping) else object_name(value)
