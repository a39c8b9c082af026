"""How an option of a selection is declared, once for all programs that offer it."""

from collections.abc import Callable
from dataclasses import Field, dataclass, field
from typing import Any, TypeVar, dataclass_transform, get_type_hints

Group = TypeVar("Group")

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
    lowest, highest : float, optional
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
    lowest: float | None = None
    highest: float | None = None
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


@dataclass_transform(kw_only_default=True)
def option_group(group: type[Group]) -> type[Group]:
    """Make a class of options that others extend: `Selection`, and pydantic classes.

    It is frozen. Type checkers are not told so, because a pydantic class that has the
    same fields is not.
    """
    return dataclass(frozen=True, slots=True, kw_only=True)(group)


def options_of(selection: type) -> dict[str, SelectionOption]:
    """The options of a class by name: those that it declares, and then the others."""
    kinds = get_type_hints(selection)
    fields_by_name: dict[str, Field[Any]] = selection.__dataclass_fields__  # type: ignore[attr-defined]
    names = [name for name in fields_by_name if name in selection.__annotations__]
    names += [name for name in fields_by_name if name not in selection.__annotations__]
    options: dict[str, SelectionOption] = {}
    for name in names:
        declared_field = fields_by_name[name]
        declaration = dict(declared_field.metadata[_KEY])
        if declaration["plain_kind"] is None:
            declaration["plain_kind"] = kinds[name]
        options[name] = SelectionOption(
            name=name, kind=kinds[name], default=declared_field.default, **declaration
        )
    return options
