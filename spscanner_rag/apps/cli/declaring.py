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
    least: float | None = None,
    most: float | None = None,
) -> Any:  # noqa: ANN401 - as typer.Option
    """Declare an option, which is required if the default is ``...``.

    The help does not show None or "".

    ``least`` and ``most`` bound a number.
    """
    return typer.Option(
        default,
        *names,
        help=meaning,
        metavar=metavar,
        min=least,
        max=most,
        show_default=default not in (None, ""),
    )


def argument(meaning: str, metavar: str | None = None, default: object = ...) -> Any:  # noqa: ANN401 - as typer.Argument
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
        own = [(name, parameter.default, parameter.annotation)]
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            hints = get_type_hints(parameter.annotation)
            own = [
                (each.name, each.default, hints[each.name])
                for each in fields(parameter.annotation)
            ]
        for each, info, kind in own:
            if (
                isinstance(info, OptionInfo)
                and info.default is False
                and not info.param_decls
            ):
                info.param_decls = (f"--{each.replace('_', '-')}",)
            flat[each] = inspect.Parameter(
                each, parameter.KEYWORD_ONLY, default=info, annotation=kind
            )

    @wraps(command)
    def called(**options: Any) -> None:  # noqa: ANN401 - values from the command line
        made = {
            name: group(**{each.name: options.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    called.__signature__ = signature.replace(parameters=list(flat.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {
        name: parameter.annotation for name, parameter in flat.items()
    }
    return called
