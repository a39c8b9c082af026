"""An access token that is never shown or stored."""

from collections.abc import Mapping
from typing import Any


class HiddenToken:
    """An access token that stays out of representations, pickles and logs.

    After unpickling it has no value.

    Examples
    --------
    >>> HiddenToken("hf_secret")
    HiddenToken(...)
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
    if not isinstance(token, HiddenToken):
        token = HiddenToken(token)
    return options, token


def without_token(model_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without ``token``, for what is stored or shown."""
    options, _ = split_token(model_kwargs)
    return options


def hide_token(fields: object) -> object:
    """Hide the token in a pydantic class's fields before they are validated.

    Validation errors show the input.
    """
    if not isinstance(fields, Mapping) or "model_kwargs" not in fields:
        return fields
    hidden: object = fields["model_kwargs"] or {}
    if isinstance(hidden, Mapping):
        options, token = split_token(hidden)
        hidden = options
        if token.value is not None:
            hidden = {**options, "token": token}
    else:
        hidden = HiddenToken(hidden)
    return {**fields, "model_kwargs": hidden}
