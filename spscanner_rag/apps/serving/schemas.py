"""The bodies of requests, as Cohere, text-embeddings-inference and this package define them.

JSON is checked while it is parsed: ignored parts never become Python objects, values
are counted beforehand, and the first wrong item ends the check. So no body takes much
memory.
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
    FiniteFloat,
    OnErrorOmit,
    TypeAdapter,
    ValidationError,
)
from pydantic.config import ExtraValues

from spscanner_rag.apps.serving.access import RefusedError

AT_ONCE_BYTES = 2**16
"""Smaller bodies are parsed in the event loop; larger ones in a thread, one at a
time."""

MOST_VALUES = 1_000_000
"""Most values in a larger body: the parser builds a tree of all, needs 300 bytes per
list, and blocks threads."""

_MARKS = (b",", b"[", b"{")

Query = Annotated[
    str, Field(max_length=100_000, description="The question; not empty.")
]
Texts = Annotated[
    list[str], Field(max_length=100_000, fail_fast=True)
]  # a server has a lower limit: 413

_Value = str | bool | int | FiniteFloat | None
_Values = Annotated[list[_Value], Field(max_length=10_000, fail_fast=True)]
Document = Annotated[
    dict[str, _Value | _Values], Field(max_length=1_000, fail_fast=True)
]

# Escapes, in this order: one-character escapes, pairs of surrogates, and lone
# surrogates.
_ESCAPES = re.compile(
    rb"(?:\\[^u])+|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})",
    re.DOTALL,
)

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+'
_STRINGS = re.compile(_STRING, re.DOTALL)
_PART = re.compile(rb'[^"]*+(?:' + _STRING + rb'[^"]*+){0,1000}+', re.DOTALL)


class Body(BaseModel):
    """A body that ignores unknown fields, because clients send fields of other versions of an API."""

    @classmethod
    def parsed(cls, body: bytes) -> Self:
        """Parse and check JSON; ``RefusedError`` has the first error, and repeats nothing that was sent."""
        if body.lstrip(b" \t\r\n")[:1] != b"{":
            raise RefusedError(422, "the body: expected a JSON object")
        if len(body) >= AT_ONCE_BYTES:
            _refuse_many_values(body)
        try:
            try:
                return cls._read(body)
            except ValidationError as error:
                kinds = [each["type"] for each in error.errors(include_input=False)]
                if b"\\u" not in body or kinds != ["json_invalid"]:
                    raise
                # try again without lone surrogates, which the parser refuses
                return cls._read(
                    _ESCAPES.sub(
                        lambda found: rb"\ufffd" if found[1] else found[0], body
                    )
                )
        except ValidationError as error:
            raise invalid(error.errors(include_input=False)) from None

    @classmethod
    def _read(cls, body: bytes) -> Self:
        # in a large body, every unknown field of its parts would be collected
        return cls.model_validate_json(
            body, extra=cls._extra if len(body) < AT_ONCE_BYTES else "ignore"
        )

    _extra: ClassVar[ExtraValues] = "ignore"


class _Own(Body):
    """A body of our own API, in which an unknown field is an error."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})
    _extra = "forbid"

    @classmethod
    def _read(cls, body: bytes) -> Self:
        if (
            len(body) >= AT_ONCE_BYTES
        ):  # pydantic's model would collect every unknown field
            _names(cls).validate_json(body)
        return super()._read(body)


@cache
def _names(kind: type[Body]) -> TypeAdapter[Any]:
    """Return a check of field names only, which stops at the first wrong one."""
    names: Any = Literal[tuple(kind.model_fields)]
    checked: Any = Annotated[dict[names, OnErrorOmit[None]], Field(fail_fast=True)]
    return TypeAdapter(checked)


def _refuse_many_values(body: bytes) -> None:
    """Raise ``RefusedError`` for JSON with more than `MOST_VALUES`, counted by its commas and brackets."""
    if (
        sum(map(body.count, _MARKS)) <= MOST_VALUES
    ):  # a quick count that includes strings
        return
    found = 0
    for part in _PART.finditer(body):  # in parts, so that other threads can run
        found += sum(map(_STRINGS.sub(b"", part[0]).count, _MARKS))
        if found > MOST_VALUES:
            raise RefusedError(
                413, f"the body has more than {MOST_VALUES} values; split the request"
            )


def invalid(errors: Any) -> RefusedError:  # noqa: ANN401 - pydantic's
    """The refusal of an invalid body: its first error, without its content, which may be large or private."""
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
            return await answer(_Asked(kind, request))

        return bounded


class _Asked(Request):
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


class _Rerank(Body):
    """The common fields of the bodies for ranking."""

    query: Query
    instruction: Literal[""] | None = (
        None  # for models that follow instructions; this one has only the query
    )


class CohereRerank(_Rerank):
    """Body of ``/v1/rerank`` and ``/v2/rerank``.

    Documents are read whole without ``max_tokens_per_doc``.
    """

    documents: Annotated[
        list[str | Document], Field(max_length=100_000, fail_fast=True)
    ]
    top_n: Annotated[int, Field(ge=1)] | None = None
    # v1 only: fields of documents that are objects; default "text"
    rank_fields: (
        Annotated[list[str], Field(max_length=1_000, fail_fast=True)] | None
    ) = None
    return_documents: bool = False  # v1 only
    max_tokens_per_doc: Annotated[int, Field(ge=1)] | None = (
        None  # by the checkpoint's tokenizer
    )


class TeiRerank(_Rerank):
    """Body of ``/rerank``, as text-embeddings-inference takes it."""

    texts: Texts
    raw_scores: bool = False
    return_text: bool = False
    return_pruned_text: bool = False
    pruned_sentences: Annotated[int, Field(ge=1)] = (
        5  # number of best sentences in each ``pruned_text``
    )


class Scan(_Own):
    """Body of ``/v1/scan``: one text, or several documents as one collection.

    Selection as `ScanResult.select`.
    """

    query: Query
    text: str | None = None
    documents: Texts | None = None
    top_k: int | float | None = 10
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    context: Annotated[int, Field(ge=0)] = 0
    order: Literal["document", "score"] = "score"
    merge: bool = False
    stream: bool = False  # lines of JSON: progress, then the result


class Given(_Own):
    """Body of ``/v1/prepare``: a text, or the content of a file in base64 with its name."""

    text: str | None = None
    file: str | None = None
    name: Annotated[str, Field(max_length=300)] = ""


class Page(Given):
    """Body of ``/v1/page``: a question about such a document."""

    query: Query
    top_k: Annotated[int, Field(ge=1)] = 10


class UnitsOfText(Body):
    """A text and its units to score: start, end, and the text for the model (null: up to the next unit)."""

    query: Query
    text: str
    units: Annotated[
        list[tuple[Annotated[int, Field(ge=0)], int, str | None]],
        Field(max_length=1_000_000, fail_fast=True),
    ]


class Score(_Own):
    """Body of ``/v1/score``: texts whose units the caller cut."""

    requests: Annotated[list[UnitsOfText], Field(max_length=100_000, fail_fast=True)]
    together: bool = False
    collection: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = (
        None  # uploaded earlier
    )


class SeveralTexts(_Own):
    """Body of ``/v1/segment`` and ``/v1/count_tokens``."""

    texts: Texts
