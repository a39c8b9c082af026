"""Limits on what a body may contain."""

import json

import pytest

from spscanner_rag.apps.serving import bodies
from spscanner_rag.apps.serving.bodies import Body
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import (
    CohereRerank,
    Scan,
    Score,
    SeveralTexts,
)

LARGE = " " * bodies.AT_ONCE_BYTES
MANY: list[tuple[type[Body], str]] = [
    (
        Score,
        '{"requests":[{"query":"q","text":"a","units":['
        + "[0,1]," * 9_999
        + "[0,1]]}]}",
    ),
    (SeveralTexts, '{"texts":[' + '"a,[",' * 11_000 + '"a"]}'),
    (Scan, '{"query":"\\\\","text":[' + "{}," * 6_000 + "{}]}"),
    (
        CohereRerank,
        '{"query":"q","documents":[{"text":"\\"",' + '"a":"b",' * 11_000 + '"c":1}]}',
    ),
]
FEW: list[tuple[type[Body], object]] = [
    (Scan, {"query": "q,", "text": "1,2,[3],{4}" * 9_000}),
    (Scan, {"query": '"' * 9_000 + "\\", "text": '[",{\\"' * 20_000}),
    (SeveralTexts, {"texts": [",,[[" * 9_000, "\\" * 9_999, '"' * 9_999]}),
]


@pytest.mark.parametrize(("kind", "body"), MANY)
def test_bodies_of_many_values_refused(
    kind: type[Body], body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_VALUES", 10_000)
    monkeypatch.setattr(kind, "_read", None)
    with pytest.raises(RefusedError, match="more than 10000 values") as refused:
        kind.parsed((body + LARGE).encode())
    assert refused.value.status_code == 413


@pytest.mark.parametrize(("kind", "body"), FEW)
def test_punctuation_is_no_value(
    kind: type[Body], body: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_VALUES", 10)
    assert (
        kind.parsed((json.dumps(body) + LARGE).encode()).model_dump(exclude_unset=True)
        == body
    )


@pytest.mark.parametrize(
    "end", ['"', "\\", '\\"' * 40_000, '"' * 80_001, '"\\', '["' * 40_000]
)
def test_strings_without_an_end_are_counted_in_one_pass(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "MOST_VALUES", 10)
    with pytest.raises(RefusedError):
        Scan.parsed(('{"query":[' + "1," * 9 + end + LARGE + '"' + end).encode())
