"""Access tokens that stay out of representations, pickles and logs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass  # imports torch, so at run time only where a scanner is needed


class HiddenToken:
    """An access token that stays out of representations, pickles and logs.

    Usually a string, a bool or None. Unpickling gives one without a value.
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


def hide_token(model_kwargs: object) -> object:
    """The arguments with a `HiddenToken` in place of a ``token``; any other object is hidden as a whole."""
    if model_kwargs is None or isinstance(model_kwargs, HiddenToken):
        return model_kwargs
    if not isinstance(model_kwargs, Mapping):
        return HiddenToken(model_kwargs)
    options, token = split_token(model_kwargs)
    return options if token.value is None else {**options, "token": token}


def hide_token_in_fields(fields: object) -> object:
    """The fields of a pydantic class with the token in ``model_kwargs`` hidden.

    Apply it before pydantic sees the fields: the errors of a ValidationError hold the input as it was given.
    """
    if not isinstance(fields, Mapping) or "model_kwargs" not in fields:
        return fields
    return {**fields, "model_kwargs": hide_token(fields["model_kwargs"])}
