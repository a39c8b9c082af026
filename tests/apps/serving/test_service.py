"""What the routes share: a request says how much of its texts is read."""

from collections.abc import Iterable
from typing import Any

import httpx
import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.baselines import RemoteScanner
from spscanner_rag.scan.pipeline import Pipeline, PlannedText
from spscanner_rag.scorers import check_read
from tests.apps.serving.conftest import running

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

QUERY = "Who signed the treaty?"
TEXTS = ["The bell rang. It rained.", "The captain signed the treaty. He left."]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/scan": {"query": QUERY, "documents": TEXTS},
    "/v1/rerank": {"query": QUERY, "documents": TEXTS},
    "/v2/rerank": {"query": QUERY, "documents": TEXTS},
    "/rerank": {"query": QUERY, "texts": TEXTS},
    "/v1/score": {
        "requests": [{"query": QUERY, "text": TEXTS[0], "units": [[0, 14, None]]}]
    },
}
REFUSED: list[object] = [-0.1, 1.5, 2, "half", "", True, [], {}, [0.5], "ALL", "0.5"]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that gets what is read of the texts of each job."""
    asked: list[object] = []
    planned = Pipeline.planned

    def noted(*arguments: Any, **options: Any) -> Iterable[PlannedText]:
        asked.append(options["read"])
        return planned(*arguments, **options)

    monkeypatch.setattr(Pipeline, "planned", noted)
    return asked


@pytest.mark.parametrize("route", BODIES)
def test_a_request_says_what_is_read(
    route: str, client: httpx.Client, reads: list[object]
) -> None:
    body = BODIES[route]
    for given in ({}, {"read": None}, {"read": "all"}, {"read": "auto"}, {"read": 1}):
        assert client.post(route, json=body | given).status_code == 200
    assert reads == ["auto", "auto", "all", "auto", 1.0]


def test_a_streamed_scan_says_what_is_read(
    client: httpx.Client, reads: list[object]
) -> None:
    body = BODIES["/v1/scan"] | {"read": "all", "stream": True}
    assert '"result"' in client.post("/v1/scan", json=body).text
    assert reads == ["all"]


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("read", REFUSED, ids=repr)
def test_another_read_is_refused_with_the_sentence_of_all_places(
    route: str, read: object, client: httpx.Client
) -> None:
    with pytest.raises((TypeError, ValueError)) as refusal:
        check_read(read)
    answer = client.post(route, json=BODIES[route] | {"read": read})
    assert (answer.status_code, answer.json()["message"]) == (422, str(refusal.value))


@pytest.mark.parametrize("route", BODIES)
def test_a_share_needs_a_sentence_scan(route: str, client: httpx.Client) -> None:
    answer = client.post(route, json=BODIES[route] | {"read": 0.5})
    assert answer.status_code == 422
    assert "read: got 0.5 for" in answer.json()["message"]
    assert "has no sentence scan" in answer.json()["message"]


def test_a_server_reads_as_it_was_told(
    tiny_scanner: Scanner, reads: list[object]
) -> None:
    with (
        running(create_app(tiny_scanner.with_read("all"))) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        for given in ({}, {"read": "auto"}):
            body = BODIES["/v1/scan"] | given
            assert client.post("/v1/scan", json=body).status_code == 200
    assert reads == ["all", "auto"]


@pytest.mark.slow
def test_a_share_is_read_as_the_scanner_reads_it(bundled: Scanner) -> None:
    text = " ".join(
        f"The {name} of house {number} counted {number + 3} boats in the harbour."
        for number in range(80)
        for name in ("keeper", "widow", "pilot")
    )
    query = "How many boats did the widow of house 50 count?"
    units = bundled.units_of(text)
    with running(create_app(bundled)) as url:
        remote = RemoteScanner(url)
        for read in (0, 0.3, "all"):
            expected = bundled.with_read(check_read(read)).score_units(
                query, text, units
            )
            got = remote.with_read(check_read(read)).score_units(query, text, units)
            np.testing.assert_allclose(got, expected, atol=1e-4)
        body = {"query": query, "text": text, "read": 0, "top_k": 3}
        answer = httpx.post(f"{url}/v1/scan", json=body, timeout=60).json()
    best = bundled.scan(query, text, read=0).select(top_k=3, order="score")
    (document,) = answer["documents"]
    shown = [passage["text"] for passage in document["passages"]]
    assert shown == [passage.text for passage in best]
