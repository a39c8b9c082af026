"""JSON bodies that are checked while they are parsed, so that none takes much memory.

Ignored parts never become Python objects, values are counted beforehand, and the first
wrong item ends the check.
"""

import re
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    OnErrorOmit,
    TypeAdapter,
    ValidationError,
)
from pydantic.config import ExtraValues

from spscanner_rag.apps.serving.limits import RefusedError

AT_ONCE_BYTES = 2**16
"""Smaller bodies are parsed in the event loop; larger ones in a thread, one at a
time."""

MOST_VALUES = 1_000_000
"""Most values in a larger body: the parser builds a tree of all, needs 300 bytes per
list, and blocks threads."""

_MARKS = (b",", b"[", b"{")

# Escapes, in this order: one-character escapes, pairs of surrogates, and lone
# surrogates.
_ESCAPES = re.compile(
    rb"(?:\\[^u])+|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+'
_STRINGS = re.compile(_STRING, re.DOTALL)
_PART = re.compile(rb'[^"]*+(?:' + _STRING + rb'[^"]*+){0,1000}+', re.DOTALL)


class Body(BaseModel):
    """A body that ignores unknown fields.

    Clients send fields of other versions of an API.
    """

    @classmethod
    def parsed(cls, body: bytes) -> Self:
        """Parse and check JSON.

        ``RefusedError`` has the first error, and repeats nothing that was sent.
        """
        if body.lstrip(b" \t\r\n")[:1] != b"{":
            raise RefusedError(422, "the body: expected a JSON object")
        if len(body) >= AT_ONCE_BYTES:
            _refuse_many_values(body)
        try:
            return cls._read_with_surrogates(body)
        except ValidationError as error:
            raise invalid(error.errors(include_input=False)) from None

    @classmethod
    def _read_with_surrogates(cls, body: bytes) -> Self:
        """Read lone surrogates, which the parser refuses, as U+FFFD."""
        try:
            return cls._read(body)
        except ValidationError as error:
            kinds = [detail["type"] for detail in error.errors(include_input=False)]
            if b"\\u" not in body or kinds != ["json_invalid"]:
                raise
            return cls._read(_ESCAPES.sub(_readable_escape, body))

    @classmethod
    def _read(cls, body: bytes) -> Self:
        extra: ExtraValues = "ignore"
        # in a large body, every unknown field of its parts would be collected
        if len(body) < AT_ONCE_BYTES:
            extra = cls._extra
        return cls.model_validate_json(body, extra=extra)

    _extra: ClassVar[ExtraValues] = "ignore"


class OwnBody(Body):
    """A body of our own API, in which an unknown field is an error."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})
    _extra = "forbid"

    @classmethod
    def _read(cls, body: bytes) -> Self:
        # pydantic's model would collect every unknown field
        if len(body) >= AT_ONCE_BYTES:
            _names(cls).validate_json(body)
        return super()._read(body)


def _readable_escape(match: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if match[1] else match[0]


@cache
def _names(kind: type[Body]) -> TypeAdapter[Any]:
    """Return a check of field names only, which stops at the first wrong one."""
    names: Any = Literal[tuple(kind.model_fields)]
    checked: Any = Annotated[dict[names, OnErrorOmit[None]], Field(fail_fast=True)]
    return TypeAdapter(checked)


def _refuse_many_values(body: bytes) -> None:
    """Raise ``RefusedError`` for JSON with more than `MOST_VALUES`.

    They are counted by its commas and brackets.
    """
    # a quick count that includes strings
    if sum(map(body.count, _MARKS)) <= MOST_VALUES:
        return
    n_values = 0
    for part in _PART.finditer(body):  # in parts, so that other threads can run
        without_strings = _STRINGS.sub(b"", part[0])
        n_values += sum(map(without_strings.count, _MARKS))
        if n_values > MOST_VALUES:
            raise RefusedError(
                413, f"the body has more than {MOST_VALUES} values; split the request"
            )


def invalid(errors: Any) -> RefusedError:  # noqa: ANN401 - pydantic's
    """The refusal of an invalid body, which has its first error.

    It does not have the body's content, which may be large or private.
    """
    first, *others = errors
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    more = f" (and {len(others)} more)" if others else ""
    too_many = first["type"] == "too_long" and not first["msg"].startswith("Tuple")
    status = 413 if too_many else 422
    return RefusedError(status, f"{place[:200]}: {first['msg'][:200]}{more}")


class BoundedRoute(APIRoute):
    """A route whose body is read by `Body.parsed`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, given a request that parses its own JSON."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer
        kind: type[Body] = self.body_field.field_info.annotation  # type: ignore[assignment]

        async def bounded(request: Request) -> Response:
            return await answer(_BoundedRequest(kind, request))

        return bounded


class _BoundedRequest(Request):
    def __init__(self, kind: type[Body], request: Request) -> None:
        super().__init__(request.scope, request.receive)
        self._kind = kind

    async def json(self) -> Body:
        body = await self.body()
        if len(body) < AT_ONCE_BYTES:
            return self._kind.parsed(body)
        service = self.app.state.service
        parsed: Body = await service.work(
            self, lambda _: self._kind.parsed(body), service.one_at_a_time
        )
        return parsed
