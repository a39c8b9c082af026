"""Bounds of what a body and freed memory may take."""

import asyncio
import ctypes
import json
from types import SimpleNamespace

import pytest

from spscanner_rag.apps.serving import memory, schemas
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import Body, CohereRerank, Scan, Score, SeveralTexts

LARGE = " " * schemas.AT_ONCE_BYTES
MANY: list[tuple[type[Body], str]] = [
    (Score, '{"requests":[{"query":"q","text":"a","units":[' + "[0,1]," * 9_999 + "[0,1]]}]}"),
    (SeveralTexts, '{"texts":[' + '"a,[",' * 11_000 + '"a"]}'),
    (Scan, '{"query":"\\\\","text":[' + "{}," * 6_000 + "{}]}"),
    (CohereRerank, '{"query":"q","documents":[{"text":"\\"",' + '"a":"b",' * 11_000 + '"c":1}]}'),
]
FEW: list[tuple[type[Body], object]] = [
    (Scan, {"query": "q,", "text": "1,2,[3],{4}" * 9_000}),
    (Scan, {"query": '"' * 9_000 + "\\", "text": '[",{\\"' * 20_000}),
    (SeveralTexts, {"texts": [",,[[" * 9_000, "\\" * 9_999, '"' * 9_999]}),
]


@pytest.mark.parametrize(("kind", "body"), MANY)
def test_bodies_of_many_values_refused(kind: type[Body], body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MOST_VALUES", 10_000)
    monkeypatch.setattr(kind, "_read", None)
    with pytest.raises(RefusedError, match="more than 10000 values") as refused:
        kind.parsed((body + LARGE).encode())
    assert refused.value.status_code == 413


@pytest.mark.parametrize(("kind", "body"), FEW)
def test_punctuation_is_no_value(kind: type[Body], body: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MOST_VALUES", 10)
    assert kind.parsed((json.dumps(body) + LARGE).encode()).model_dump(exclude_unset=True) == body


@pytest.mark.parametrize("end", ['"', "\\", '\\"' * 40_000, '"' * 80_001, '"\\', '["' * 40_000])
def test_strings_without_an_end_are_counted_in_one_pass(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MOST_VALUES", 10)
    with pytest.raises(RefusedError):
        Scan.parsed(('{"query":[' + "1," * 9 + end + LARGE + '"' + end).encode())


@pytest.mark.parametrize(("held", "trims"), [((5, 5, 6, 5), 0), ((5, 9, 9, 9), 1), ((5, 9, 5, 9, 5), 2)])
def test_freed_memory_is_returned(held: tuple[int, ...], trims: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    readings = [each * memory.GROWTH // 2 for each in held]
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=given.append))
    monkeypatch.setattr(memory, "_resident", lambda: readings.pop(0))
    monkeypatch.setattr(memory, "_EVERY", 0)
    with pytest.raises(IndexError):
        asyncio.run(memory.give_back_memory())
    assert given == [0] * trims
