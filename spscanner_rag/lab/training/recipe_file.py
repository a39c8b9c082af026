"""Reads a recipe from a TOML file."""

import tomllib
from dataclasses import fields
from pathlib import Path

from spscanner_rag.lab.training.recipe import Recipe


def read_recipe(path: Path | None) -> Recipe:
    """Read a recipe; keys that the file leaves out keep their defaults.

    Raises
    ------
    ValueError
        If the file is not TOML, or has an unknown key or a value of the wrong type; names file and key.
    """
    if path is None:
        return Recipe()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected a TOML file, got {error}") from None
    defaults = {field.name: field.default for field in fields(Recipe)}
    for key, value in values.items():
        if key not in defaults:
            raise ValueError(f"{path}: unknown key {key!r}; expected one of {', '.join(defaults)}")
        if key != "positive_weight" or not isinstance(value, str):  # the only number that may be a string
            values[key] = _converted(value, defaults[key], f"{path}, {key}")
    try:
        return Recipe(**values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _converted(value: object, default: object, where: str) -> object:
    """The value in its field's type: an int may stand for a float, and a list becomes a tuple."""
    if isinstance(default, tuple) and isinstance(value, list) and value:
        example = default[0] if default else ""
        return tuple(_converted(item, example, where) for item in value)
    if default is None and isinstance(value, dict):
        return {name: _converted(factor, 1.0, f"{where}.{name}") for name, factor in value.items()}
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        expected = "a table" if default is None else type(default).__name__
        raise ValueError(f"{where}: got {value!r}, expected {expected}")
    return value
