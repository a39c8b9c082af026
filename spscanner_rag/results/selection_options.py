"""How an option of a selection is declared, once for all programs that offer it."""

from collections.abc import Callable
from dataclasses import Field, dataclass, field
from typing import Any, get_type_hints

_KEY = "selection option"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionOption:
    """One option of a selection: what it means, and which values are valid.

    Parameters
    ----------
    name : str
        The name of the field of `Selection`.
    kind : type
        The type of the field in Python.
    plain_kind : type
        The type where no function can be given: in JSON, on a command line.
    default : object
        The field's default.
    meaning : str
        One sentence, for the help of a command and the schema of a service.
    least, most : float, optional
        The bounds of a number, both inclusive.
    choices : tuple of str
        The only valid values, if there are few.
    of_several : bool
        Whether it has a meaning only in a selection from several texts.
    is_valid : callable
        Tells whether a value of the field is valid.
    expected : str
        What a valid value is, for the error about another.
    """

    name: str
    kind: Any
    plain_kind: Any
    default: object
    meaning: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    of_several: bool = False
    is_valid: Callable[[Any], object]
    expected: str

    def check(self, value: object) -> None:
        """Raise ``ValueError``, which begins with the name, for an invalid value."""
        if not self.is_valid(value):
            raise ValueError(
                f"{self.name}: got {value!r:.80}; expected {self.expected}"
            )


def selection_option(
    default: object,
    meaning: str,
    *,
    is_valid: Callable[[Any], object],
    expected: str,
    plain_kind: Any = None,  # noqa: ANN401 - a type, or a union of types
    **further: Any,  # noqa: ANN401 - fields of `SelectionOption`
) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Declare a field of `Selection` as one of its options.

    ``plain_kind`` is the field's own type by default.
    """
    declaration = {
        "meaning": meaning,
        "is_valid": is_valid,
        "expected": expected,
        "plain_kind": plain_kind,
        **further,
    }
    return field(default=default, metadata={_KEY: declaration})


def options_of(selection: type) -> dict[str, SelectionOption]:
    """The options that a class declares, by name and in their order."""
    kinds = get_type_hints(selection)
    own_fields: dict[str, Field[Any]] = selection.__dataclass_fields__  # type: ignore[attr-defined]
    options: dict[str, SelectionOption] = {}
    for name, own_field in own_fields.items():
        declaration = dict(own_field.metadata[_KEY])
        if declaration["plain_kind"] is None:
            declaration["plain_kind"] = kinds[name]
        options[name] = SelectionOption(
            name=name, kind=kinds[name], default=own_field.default, **declaration
        )
    return options
