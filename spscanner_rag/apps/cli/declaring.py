"""Declares options and arguments of commands, and takes groups of options apart."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer
from typer.models import OptionInfo


def option(
    default: object,
    meaning: str,
    metavar: str | None = None,
    *,
    names: Sequence[str] = (),
    lowest: float | None = None,
    highest: float | None = None,
) -> Any:  # noqa: ANN401 - as typer.Option
    """Declare an option, which is required if the default is ``...``.

    The help does not show None or "".

    ``lowest`` and ``highest`` bound a number.
    """
    return typer.Option(
        default,
        *names,
        help=meaning,
        metavar=metavar,
        min=lowest,
        max=highest,
        show_default=default not in (None, ""),
    )


def argument(
    meaning: str,
    metavar: str | None = None,
    default: object = ...,
) -> Any:  # noqa: ANN401 - as typer.Argument
    """Declare a positional argument."""
    return typer.Argument(default, help=meaning, metavar=metavar, show_default=False)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options.

    Each of their fields becomes an option of the command.

    A switch that is off by default gets only its positive name, without ``--no-``.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flat: dict[str, inspect.Parameter] = {}
    for name, parameter in signature.parameters.items():
        if not is_dataclass(parameter.annotation):
            flat[name] = _keyword(name, parameter.default, parameter.annotation)
            continue
        groups[name] = parameter.annotation
        kinds = get_type_hints(parameter.annotation)
        for field in fields(parameter.annotation):
            flat[field.name] = _keyword(field.name, field.default, kinds[field.name])

    @wraps(command)
    def called(**options: Any) -> None:  # noqa: ANN401 - values from the command line
        for name, group in groups.items():
            values: dict[str, Any] = {}
            for field in fields(group):
                values[field.name] = options.pop(field.name)
            options[name] = group(**values)
        command(**options)

    annotations: dict[str, Any] = {}
    for name, parameter in flat.items():
        annotations[name] = parameter.annotation
    flat_signature = signature.replace(parameters=list(flat.values()))
    called.__signature__ = flat_signature  # type: ignore[attr-defined]
    called.__annotations__ = annotations
    return called


def _keyword(name: str, info: object, kind: object) -> inspect.Parameter:
    """The parameter of an option.

    A switch that is off by default gets its positive name.
    """
    if isinstance(info, OptionInfo) and info.default is False and not info.param_decls:
        info.param_decls = (f"--{name.replace('_', '-')}",)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind
    )
