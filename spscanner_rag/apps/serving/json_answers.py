"""Answers in JSON, which may be large, and a check that several routes need."""

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import Response
from pydantic_core import to_json

from spscanner_rag.apps.serving.limits import RefusedError


async def json_answer(make_content: Callable[[], Any]) -> Response:
    """Make and encode an answer in a thread, because it may be large."""
    encoded = await asyncio.to_thread(lambda: to_json(make_content()))
    return Response(encoded, media_type="application/json")


def check_one_of(names: str, *values: object) -> None:
    """Raise ``RefusedError`` 422 unless exactly one of several fields has a value."""
    present = [value for value in values if value is not None]
    if len(present) != 1:
        raise RefusedError(422, f"got {len(present)} of {names}; expected one of them")
