"""The routes, asked over a real connection: Cohere's and TEI's forms, scans, units, and bad requests."""

import json
from typing import Any

import cohere
import httpx
import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.reading_queue import ReadingQueue
from spscanner_rag.checkpoint.digests import fingerprint
from spscanner_rag.results.selection import sigmoid

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

QUERY = "Who signed the treaty?"
TEXTS = [
    "The bell rang. It rained for a week.",
    "The keeper wrote the date in the book. The captain signed the treaty and left.",
    "",
    "The well was dry. The treaty was never signed by the keeper. He left.",
]


@pytest.fixture(scope="module")
def ranked(tiny_scanner: Scanner) -> list[tuple[int, float]]:
    """What the scanner itself says."""
    return [(one.number, one.score) for one in tiny_scanner.rank(QUERY, TEXTS)]


def probability(score: float) -> float:
    return float(sigmoid(np.array([score]))[0])


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_cohere_s_client_gets_the_scanner_s_ranking(
    address: str, ranked: list[tuple[int, float]], version: str
) -> None:
    kind: Any = cohere.Client if version == "v1" else cohere.ClientV2
    with httpx.Client() as connection:
        answer = kind("key", base_url=address, httpx_client=connection).rerank(
            model="any", query=QUERY, documents=TEXTS
        )
    got = [(result.index, result.relevance_score) for result in answer.results]
    assert [index for index, _ in got] == [number for number, _ in ranked]
    assert [score for _, score in got] == pytest.approx([probability(score) for _, score in ranked], abs=1e-4)


def test_cohere_s_first_version_returns_documents_and_knows_fields(client: httpx.Client) -> None:
    documents = [
        {"title": "Weather", "body": "It rained."},
        {"title": "Treaty", "body": "The captain signed it."},
    ]
    body = {
        "query": QUERY,
        "documents": documents,
        "rank_fields": ["title", "body"],
        "return_documents": True,
    }
    results = client.post("/v1/rerank", json={**body, "top_n": 1}).json()["results"]
    assert [set(result) for result in results] == [{"index", "relevance_score", "document"}]
    assert results[0]["document"] == documents[results[0]["index"]]
    answer = client.post("/v1/rerank", json={"query": QUERY, "documents": documents})
    assert (answer.status_code, "documents.0 has no text in 'text'" in answer.json()["message"]) == (
        422,
        True,
    )


def test_tei_s_form_with_raw_scores_and_pruned_text(
    client: httpx.Client, tiny_scanner: Scanner, ranked: list[tuple[int, float]]
) -> None:
    body = {
        "query": QUERY,
        "texts": TEXTS,
        "raw_scores": True,
        "return_text": True,
        "return_pruned_text": True,
    }
    answers = client.post("/rerank", json={**body, "pruned_sentences": 1}).json()
    assert [answer["index"] for answer in answers] == [number for number, _ in ranked]
    assert [answer["score"] for answer in answers[:-1]] == pytest.approx(
        [score for _, score in ranked[:-1]], abs=1e-4
    )
    assert answers[-1]["text"] == answers[-1]["pruned_text"] == ""  # the empty text is last
    for answer in answers:
        assert answer["text"] == TEXTS[answer["index"]]
        assert answer["pruned_text"] in answer["text"]
        assert answer["pruned_text"].count(".") <= 1
    plain = client.post("/rerank", json={"query": QUERY, "texts": TEXTS}).json()
    assert [set(answer) for answer in plain] == [{"index", "score"}] * 4
    assert all(0 <= answer["score"] <= 1 for answer in plain)


def test_a_scan_selects_as_the_scanner_does(client: httpx.Client, tiny_scanner: Scanner) -> None:
    body = {"query": QUERY, "text": TEXTS[1], "top_k": 1, "context": 1, "order": "document"}
    (document,) = client.post("/v1/scan", json=body).json()["documents"]
    passages = tiny_scanner.scan(QUERY, TEXTS[1]).select(1, context=1)
    assert [(p["start"], p["end"], p["text"]) for p in document["passages"]] == [
        (p.start, p.end, p.text) for p in passages
    ]
    assert document["sentences"] == 2
    both = client.post("/v1/scan", json={"query": QUERY, "documents": TEXTS, "top_k": None}).json()[
        "documents"
    ]
    results = tiny_scanner.scan_many([(QUERY, text) for text in TEXTS], together=True)
    assert [document["score"] for document in both] == pytest.approx(
        [probability(result.document_score()) for result in results], abs=1e-4
    )


def test_a_streamed_scan_ends_with_the_result(client: httpx.Client) -> None:
    body = {"query": QUERY, "text": "He left. " * 4000, "top_k": 2, "stream": True}
    with client.stream("POST", "/v1/scan", json=body) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    *progress, last = lines
    done = [line["progress"]["tokens"] for line in progress]
    assert len(done) > 1
    assert done == sorted(done)
    assert last["result"] == client.post("/v1/scan", json={**body, "stream": False}).json()


def test_units_of_the_caller_are_scored(client: httpx.Client, tiny_scanner: Scanner) -> None:
    units = tiny_scanner.segment(TEXTS[3])
    listed = [(start, end, None) for start, end, _ in units]
    body = {"requests": [{"query": QUERY, "text": TEXTS[3], "units": listed}]}
    (logits,) = client.post("/v1/score", json=body).json()["logits"]
    assert logits == pytest.approx(tiny_scanner.score_units(QUERY, TEXTS[3], units).tolist(), abs=1e-4)


def test_segments_tokens_and_the_model_are_told(client: httpx.Client, tiny_scanner: Scanner) -> None:
    (units,) = client.post("/v1/segment", json={"texts": [TEXTS[1]]}).json()["units"]
    assert [tuple(unit) for unit in units] == tiny_scanner.segment(TEXTS[1])
    counted = client.post("/v1/count_tokens", json={"texts": TEXTS}).json()["tokens"]
    assert counted == [tiny_scanner.count_tokens(text) for text in TEXTS]
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["segmenter"], model["uses_collection"]) == ("sentence", True)
    assert model["sha256"] == fingerprint(tiny_scanner.checkpoint.files)


def test_a_server_whose_reading_has_ended_is_not_healthy(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadingQueue, "alive", False)
    answer = client.get("/health")
    assert (answer.status_code, "restart the server" in answer.json()["message"]) == (503, True)


def test_state_and_metrics(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}
    client.post("/v1/scan", json={"query": QUERY, "text": TEXTS[0]})
    text = client.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values["spscanner_tokens_read_total"]) > 0
    assert float(values['spscanner_requests_total{path="/v1/scan",status="200"}']) > 0
    assert float(values["spscanner_waiting_requests"]) == 0
    assert 'spscanner_request_seconds_bucket{le="0.005",path="/v1/scan"}' in values


BAD = {
    "empty question": ("/v1/scan", {"query": " ", "text": "x"}, "query: got ' '"),
    "neither text nor documents": ("/v1/scan", {"query": "a"}, "got both or neither of text and documents"),
    "both": ("/v1/scan", {"query": "a", "text": "x", "documents": ["y"]}, "got both or neither"),
    "unknown field": ("/v1/scan", {"query": "a", "text": "x", "topk": 3}, "topk: Extra inputs"),
    "top_k": ("/v1/scan", {"query": "a", "text": "x", "top_k": 0}, "top_k"),
    "a number as text": ("/rerank", {"query": "a", "texts": [1]}, "texts.0: Input should be a valid string"),
    "no documents": ("/v2/rerank", {"query": "a"}, "documents: Field required"),
    "top_n": ("/v2/rerank", {"query": "a", "documents": ["x"], "top_n": 0}, "top_n"),
    "units outside": (
        "/v1/score", {"requests": [{"query": "a", "text": "xy", "units": [[0, 3, None]]}]}, "0 to 3 overlaps"
    ),
    "units overlap": (
        "/v1/score", {"requests": [{"query": "a", "text": "xyz", "units": [[0, 2, None], [1, 3, None]]}]}, "1 to 3"
    ),
    "collection": ("/v1/score", {"requests": [], "collection": "x"}, "collection: String should match"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_gets_one_clear_line(client: httpx.Client, name: str) -> None:
    path, body, expected = BAD[name]
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert set(answer.json()) == {"message", "error", "error_type"}
    assert expected in answer.json()["message"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_body_that_is_no_json_of_unicode_is_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/v1/scan", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["message"]


def test_a_lone_surrogate_is_read_as_the_replacement_character(client: httpx.Client) -> None:
    content = b'{"query": "who \\ud800", "text": "He left\\udfff."}'
    answer = client.post("/v1/scan", content=content, headers={"content-type": "application/json"})
    assert answer.json()["query"] == "who \ufffd"
    assert answer.json()["documents"][0]["passages"][0]["text"] == "He left\ufffd."


def test_an_unknown_collection_is_named(client: httpx.Client) -> None:
    digest = "0" * 64
    body = {"requests": [{"query": "a", "text": "x", "units": [[0, 1, None]]}], "collection": digest}
    answer = client.post("/v1/score", json=body)
    assert (answer.status_code, digest in answer.json()["message"]) == (404, True)
    assert client.put(f"/v1/collections/{digest}", content=b"no").status_code == 422
    assert client.get("/nowhere").status_code == 404
    assert client.get("/v1/scan").status_code == 405
