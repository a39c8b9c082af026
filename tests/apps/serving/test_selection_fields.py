"""The options of a selection as a request names them."""

import json

import httpx
import pytest

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.schemas import Scan
from spscanner_rag.results.selection import SELECTION_OPTIONS

SENTENCES = "One is here. Two is there. Three is gone. Four came back. Five left."


def scan_with(top_k: object) -> Scan:
    body = {"query": "Who?", "text": SENTENCES, "top_k": top_k}
    return Scan.parsed(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("top_k", "expected"),
    [("5", 5), (" 5 ", 5), ("5.0", 5), ("0.5", 0.5), (5, 5), (0.5, 0.5), (None, None)],
)
def test_a_number_may_stand_in_quotes(top_k: object, expected: object) -> None:
    selection = scan_with(top_k).selection(says_answers=False)
    assert selection.top_k == expected
    assert type(selection.top_k) is type(expected)


@pytest.mark.parametrize("top_k", ["elbow", "elbow:5-30"])
def test_an_elbow_stays_a_word(top_k: str) -> None:
    assert scan_with(top_k).selection(says_answers=False).top_k == top_k


@pytest.mark.parametrize("top_k", ["0", "-3", "2.5", "nan"])
def test_other_numbers_are_refused_by_name(top_k: str) -> None:
    with pytest.raises(RefusedError) as refused:
        scan_with(top_k).selection(says_answers=False)
    assert refused.value.status_code == 422
    assert refused.value.detail.startswith("top_k: got ")


@pytest.mark.parametrize("top_k", ["five", "", "elbow:5", "the treaty of 1911"])
def test_other_strings_are_refused_without_being_repeated(top_k: str) -> None:
    with pytest.raises(RefusedError) as refused:
        scan_with(top_k)
    assert refused.value.status_code == 422
    assert refused.value.detail == (
        f"top_k: expected {SELECTION_OPTIONS['top_k'].expected}"
    )


def test_the_schema_still_names_every_kind() -> None:
    field = Scan.model_json_schema()["properties"]["top_k"]
    kinds = [kind["type"] for kind in field["anyOf"]]
    assert kinds == ["integer", "number", "string", "null"]
    assert field["description"] == SELECTION_OPTIONS["top_k"].meaning


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_server_selects_as_many_as_the_quoted_number(client: httpx.Client) -> None:
    body = {"query": "Who?", "text": SENTENCES, "top_k": "2"}
    answer = client.post("/v1/scan", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json() == client.post("/v1/scan", json=body | {"top_k": 2}).json()
