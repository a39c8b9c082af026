"""What stands in saved settings for objects that cannot be saved: their names."""

from collections.abc import Mapping
from pathlib import Path

_OBJECT = "object"  # the key of the name of an object that cannot be saved


def object_name(value: object) -> dict[str, str]:
    """What stands for an object."""
    kind = value if hasattr(value, "__qualname__") else type(value)
    return {_OBJECT: f"{kind.__module__}.{getattr(kind, '__qualname__', kind)}"}


def refuse_object_name(name: str, value: object) -> None:
    """Raise ``ValueError`` for what `object_name` returned, where the object is expected."""
    if isinstance(value, Mapping) and set(value) == {_OBJECT}:
        raise ValueError(
            f"{name}: got the name of {value[_OBJECT]}, which was not saved; expected the object: "
            f"from_dict(data, {name}=...)"
        )


def plain(value: object) -> object:
    """A value as JSON can hold it."""
    if isinstance(value, Path):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | Mapping) else object_name(value)
