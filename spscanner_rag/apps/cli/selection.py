"""The options of a selection on the command line, made from `SELECTION_OPTIONS`."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, make_dataclass
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

from typer.models import OptionInfo

from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.results import Selection
from spscanner_rag.results.selection import SELECTION_OPTIONS
from spscanner_rag.results.selection_options import SelectionOption

Group = TypeVar("Group", bound="SelectionOptions")

OF_ONE_TEXT = "each file is a text of its own, and all files are ranked together"
"""Why a command has no limit for each text."""

_METAVARS = {"always_keep": "PATTERN...", "count_tokens": "ENCODING"}


class SelectionOptions:
    """The options of a selection in a command, which `selection_options` adds."""

    left_out: ClassVar[Mapping[str, str]] = {}
    """The options of a selection that the command lacks, with the reason for each."""

    def selection(self, **replaced: object) -> Selection:
        """Check the values before a file is read or a model is loaded.

        ``replaced`` has values that the command decided itself. Raises ``ValueError``
        that names the option as the command line does.
        """
        values: dict[str, Any] = {}
        for name, value in vars(self).items():
            is_default = isinstance(value, OptionInfo)  # without a command line
            values[name] = value.default if is_default else value
        return checked_selection(**(values | replaced))


def selection_options(
    redeclared: Mapping[str, OptionInfo] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> Callable[[type[Group]], type[Group]]:
    """Add every option of a selection to a group of options, for `grouped`.

    ``redeclared`` has the options whose default or help are the command's own.
    ``left_out`` names those that it does not have, each with the reason.

    Examples
    --------
    >>> @selection_options(left_out={"merge": "a record has a row for each sentence"})
    ... class RecordOptions(SelectionOptions):
    ...     "The selection of a record."
    >>> RecordOptions(threshold=0.5, top_k="elbow").selection().top_k
    'elbow'
    """
    command_options = dict(redeclared or {})
    reasons = dict(left_out or {})
    for name in (*command_options, *reasons):
        if name not in SELECTION_OPTIONS:
            raise ValueError(
                f"{name}: no option of a selection; expected one of"
                f" {', '.join(SELECTION_OPTIONS)}"
            )

    def with_options(group: type[Group]) -> type[Group]:
        specifications: list[tuple[str, Any, Any]] = []
        for name, declared in SELECTION_OPTIONS.items():
            if name in reasons:
                continue
            info = command_options.get(name) or _option_of(declared)
            kind = _kind_of(declared)
            if info.default is None:
                kind = kind | None
            specifications.append((name, kind, field(default=info)))
        return make_dataclass(
            group.__name__,
            specifications,
            bases=(group,),
            namespace={"left_out": reasons, "__doc__": group.__doc__},
            frozen=True,
            kw_only=True,
        )

    return with_options


def _option_of(declared: SelectionOption) -> OptionInfo:
    default = declared.default
    if _kind_of(declared) is str and default is not None:
        default = str(default)
    metavar = _METAVARS.get(declared.name)
    if declared.choices:
        metavar = f"[{'|'.join(declared.choices)}]"
    info: OptionInfo = option(default, declared.meaning, metavar)
    return info


def _kind_of(declared: SelectionOption) -> Any:  # noqa: ANN401 - a type
    """The type of an option's value on the command line."""
    kind = declared.plain_kind
    if get_origin(kind) is Literal:
        return str
    if not isinstance(kind, UnionType):
        return kind
    kinds = [member for member in get_args(kind) if member is not NoneType]
    if len(kinds) == 1:
        return kinds[0]
    return str  # as for `--top-k`: a number or a word


def checked_selection(
    top_k: str | None,
    **options: Any,  # noqa: ANN401 - as `Selection`
) -> Selection:
    """Check options before reading a file or loading a model.

    Errors name options as the command line does.
    """
    try:
        return Selection(top_k=_number_or_word(top_k), **options)
    except ValueError as error:  # its message begins with the name of the argument
        name, colon, explanation = str(error).partition(":")
        explanation = explanation.replace("None for all", '"all"')
        explanation = re.sub(", or None( for no budget)?(?=:|$)", "", explanation)
        raise ValueError(f"--{name.replace('_', '-')}{colon}{explanation}") from None


def _number_or_word(top_k: str | None) -> float | str | None:
    if top_k is None or top_k == "all":
        return None
    for number in (int, float):
        with suppress(ValueError):
            return number(top_k)
    return top_k
