"""The options of a selection as fields of a body, made from `SELECTION_OPTIONS`."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError

from spscanner_rag.apps.bounded_patterns import BoundedPatterns, Patterns
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.results import Selection
from spscanner_rag.results.selection import SELECTION_OPTIONS
from spscanner_rag.results.selection_options import SelectionOption

Fields = TypeVar("Fields", bound="SelectionFields")

LEFT_OUT = {
    "count_tokens": "a client must not make the server fetch an encoding's file",
    "top_k_per_text": "each document is selected from on its own",
}
"""The options that a request does not have, each with the reason."""

MOST_DIVERSE = 1_000
"""The most sentences of a selection that compares them with each other, which takes a
time proportional to this number."""

_NUMBER: TypeAdapter[int | float] = TypeAdapter(int | float)


class SelectionFields(BaseModel):
    """A body with the options of a selection, added by `with_selection_options`."""

    selection_options: ClassVar[tuple[str, ...]] = ()

    def selection(self, says_answers: bool, has_keep_scale: bool = True) -> Selection:
        """Return the selection.

        ``RefusedError`` 422 for options that do not fit together. ``says_answers``
        tells whether the scanner estimates if a text answers, ``has_keep_scale``
        whether presets of ``keep`` have what they cut by.
        """
        values = {name: getattr(self, name) for name in self.selection_options}
        if values["require_answer"] is not None and not says_answers:
            raise RefusedError(
                422,
                "require_answer: this scanner does not estimate whether a text answers;"
                " use threshold instead",
            )
        if values["keep"] is not None and not has_keep_scale:
            raise RefusedError(
                422,
                "keep: this scanner's checkpoint has no spscanner.keep, which presets"
                " cut by; use threshold instead",
            )
        top_k = values["top_k"]
        is_short = isinstance(top_k, int) and top_k <= MOST_DIVERSE
        if values["diversity"] < 1 and not is_short:
            raise RefusedError(
                422,
                "diversity: below 1 it needs a top_k that is a whole number of at most"
                f" {MOST_DIVERSE}",
            )
        try:
            if values["always_keep"] is not None:
                values["always_keep"] = BoundedPatterns(values["always_keep"])
            return Selection(**values)
        except ValueError as error:
            raise RefusedError(422, str(error)) from None


def with_selection_options(
    defaults: Mapping[str, object],
) -> Callable[[type[Fields]], type[Fields]]:
    """Add every option of a selection to a body, with some other defaults."""

    def with_options(body: type[Fields]) -> type[Fields]:
        fields: dict[str, Any] = {}
        for name, declared in SELECTION_OPTIONS.items():
            if name not in LEFT_OUT:
                default = defaults.get(name, declared.default)
                fields[name] = (_kind_of(declared), default)
        extended_body = create_model(
            body.__name__, __base__=body, __module__=body.__module__, **fields
        )
        extended_body.__doc__ = body.__doc__
        extended_body.selection_options = tuple(fields)
        return extended_body

    return with_options


def _kind_of(declared: SelectionOption) -> Any:  # noqa: ANN401 - a type
    """The type of a field, with the bounds and the meaning of the option."""
    kind = declared.plain_kind
    if declared.name == "always_keep":
        kind = Patterns | None
    elif declared.name == "top_k":
        kind = Annotated[kind, BeforeValidator(_number_in_quotes)]
    return Annotated[
        kind,
        Field(ge=declared.lowest, le=declared.highest, description=declared.meaning),
    ]


def _number_in_quotes(value: object) -> object:
    """Return the number that a string of JSON spells, and other values unchanged.

    Clients may send ``"5"`` for 5, as for every field that holds a number.
    """
    if not isinstance(value, str):
        return value
    try:
        return _NUMBER.validate_python(value)
    except ValidationError:
        option = SELECTION_OPTIONS["top_k"]
        if option.is_valid(value):
            return value
        # an answer does not repeat what may be a text in the wrong place
        raise PydanticCustomError(
            "top_k", "expected {expected}", {"expected": option.expected}
        ) from None
