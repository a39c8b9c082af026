"""The routes over a real connection.

These are the forms of Cohere and TEI, scans, units, the page, and bad requests.
"""

import asyncio
import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cohere
import httpx
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.pages.html_page import hash_of, style_and_script
from spscanner_rag.apps.pages.report import REPORT
from spscanner_rag.apps.serving import app, page_routes, progress_lines
from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.reading_queue import ReadingQueue
from spscanner_rag.checkpoint.digests import fingerprint
from spscanner_rag.files.formats import accepted_files, formats_in_words
from spscanner_rag.scan.reading import Reading

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
    """The result of the scanner itself."""
    return [(one.number, one.score) for one in tiny_scanner.rank(QUERY, TEXTS)]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_cohere_gets_the_same_ranking(
    address: str, ranked: list[tuple[int, float]], version: str
) -> None:
    kind: Any = cohere.Client if version == "v1" else cohere.ClientV2
    with httpx.Client() as connection:
        answer = kind("key", base_url=address, httpx_client=connection).rerank(
            model="any", query=QUERY, documents=TEXTS
        )
    got = [(result.index, result.relevance_score) for result in answer.results]
    assert [index for index, _ in got] == [number for number, _ in ranked]
    assert [score for _, score in got] == pytest.approx(
        [score for _, score in ranked], abs=1e-4
    )


@pytest.mark.parametrize(
    ("provider", "route"),
    [
        ("cohere", "v1/rerank"),
        ("cohere", "v2/rerank"),
        ("text-embeddings-inference", "rerank"),
    ],
)
def test_rerankers(
    address: str, ranked: list[tuple[int, float]], provider: str, route: str
) -> None:
    kind = pytest.importorskip("rerankers.models.api_rankers").APIRanker
    found = (
        kind("any", "key", provider, url=f"{address}/{route}")
        .rank(QUERY, TEXTS)
        .results
    )
    assert [one.document.text for one in found] == [
        TEXTS[number] for number, _ in ranked
    ]
    assert [one.score for one in found] == pytest.approx(
        [score for _, score in ranked], abs=1e-4
    )


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_llamaindex_s_tei_rerank(address: str, ranked: list[tuple[int, float]]) -> None:
    module = "llama_index.postprocessor.tei_rerank"  # it leaves its connection open
    reranker = pytest.importorskip(module).TextEmbeddingInference(
        base_url=address, top_n=4, model_name="any"
    )
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [schema.NodeWithScore(node=schema.TextNode(text=text)) for text in TEXTS]
    found = [node.text for node in reranker.postprocess_nodes(nodes, query_str=QUERY)]
    assert found == [TEXTS[number] for number, _ in ranked]


def test_cohere_s_first_version_returns_documents_and_knows_fields(
    client: httpx.Client,
) -> None:
    titled = {"Weather": "It rained.", "Treaty": "The captain signed it."}
    documents = [{"title": title, "body": body} for title, body in titled.items()]
    body = {
        "query": QUERY,
        "documents": documents,
        "rank_fields": ["title", "body"],
        "top_n": 1,
    }
    results = client.post("/v1/rerank", json=body | {"return_documents": True}).json()[
        "results"
    ]
    assert [set(result) for result in results] == [
        {"index", "relevance_score", "document"}
    ]
    assert results[0]["document"] == documents[results[0]["index"]]
    answer = client.post("/v1/rerank", json={"query": QUERY, "documents": documents})
    assert answer.status_code == 422
    assert "documents.0 has no text in 'text'" in answer.json()["message"]


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("most", [1, 12, 30, 10_000])
def test_max_tokens_per_doc(
    client: httpx.Client, tiny_scanner: Scanner, version: str, most: int
) -> None:
    texts = [*TEXTS, "Ωμέγα 🚢🚢 東京. " * 20]
    body = {
        "query": QUERY,
        "documents": texts,
        "max_tokens_per_doc": most,
        "instruction": "",
    }
    got = client.post(f"/{version}/rerank", json=body).json()["results"]
    encode = tiny_scanner.checkpoint.tokenizer.encode
    ends = [[end for _, end in encode(text).offsets] for text in texts]
    cut = [
        text[: own[most - 1]] if len(own) >= most else text
        for text, own in zip(texts, ends, strict=True)
    ]
    expected = tiny_scanner.rank(QUERY, cut)
    assert {one["index"] for one in got} == set(range(len(texts)))
    assert [one["relevance_score"] for one in got] == pytest.approx(
        [one.score for one in expected], abs=1e-3
    )


def test_tei_s_form_with_raw_scores_and_pruned_text(
    client: httpx.Client, tiny_scanner: Scanner, ranked: list[tuple[int, float]]
) -> None:
    options = {
        "raw_scores": True,
        "return_text": True,
        "return_pruned_text": True,
        "pruned_sentences": 1,
    }
    answers = client.post(
        "/rerank", json={"query": QUERY, "texts": TEXTS, **options}
    ).json()
    assert [answer["index"] for answer in answers] == [number for number, _ in ranked]
    logits = [one.logit for one in tiny_scanner.rank(QUERY, TEXTS)[:-1]]
    assert [answer["score"] for answer in answers[:-1]] == pytest.approx(
        logits, abs=1e-4
    )
    assert (
        answers[-1]["text"] == answers[-1]["pruned_text"] == ""
    )  # the empty text is last
    for answer in answers:
        assert answer["text"] == TEXTS[answer["index"]]
        assert answer["pruned_text"] in answer["text"]
        assert answer["pruned_text"].count(".") <= 1
    plain = client.post("/rerank", json={"query": QUERY, "texts": TEXTS}).json()
    assert [set(answer) for answer in plain] == [{"index", "score"}] * 4
    assert all(0 <= answer["score"] <= 1 for answer in plain)


def test_a_scan_selects_as_the_scanner_does(
    client: httpx.Client, tiny_scanner: Scanner
) -> None:
    body = {
        "query": QUERY,
        "text": TEXTS[1],
        "top_k": 1,
        "context": 1,
        "order": "document",
    }
    (document,) = client.post("/v1/scan", json=body).json()["documents"]
    passages = tiny_scanner.scan(QUERY, TEXTS[1]).select(1, context=1)
    assert [(p["start"], p["end"], p["text"]) for p in document["passages"]] == [
        (p.start, p.end, p.text) for p in passages
    ]
    assert document["sentences"] == 2
    both = client.post(
        "/v1/scan", json={"query": QUERY, "documents": TEXTS, "top_k": None}
    ).json()
    results = tiny_scanner.scan_many([(QUERY, text) for text in TEXTS], together=True)
    scores = [float(result.scores.max(initial=0)) for result in results]
    assert [document["score"] for document in both["documents"]] == pytest.approx(
        scores, abs=1e-4
    )


def test_a_streamed_scan_ends_with_the_result(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_lines, "SECONDS_BETWEEN", 0.001)
    body = {"query": QUERY, "text": "He left. " * 4000, "top_k": 2, "stream": True}
    with client.stream("POST", "/v1/scan", json=body) as answer:
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    *progress, last = lines
    done = [line["progress"]["tokens"] for line in progress]
    assert len(done) > 1
    assert done == sorted(done)
    assert (
        last["result"] == client.post("/v1/scan", json={**body, "stream": False}).json()
    )


def test_health_and_model_until_the_reading_has_ended(
    client: httpx.Client, tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["segmenter"], model["sha256"]) == (
        "sentence",
        fingerprint(tiny_scanner.checkpoint.files),
    )
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}
    monkeypatch.setattr(ReadingQueue, "alive", False)
    for path in ("/health", "/ready"):
        answer = client.get(path)
        assert (
            answer.status_code,
            "restart the server" in answer.json()["message"],
        ) == (503, True)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


BAD = {
    "empty question": ("/v1/scan", {"query": " ", "text": "x"}, "query: got ' '"),
    "neither text nor documents": (
        "/v1/scan",
        {"query": "a"},
        "got 0 of text and documents; expected one",
    ),
    "both": (
        "/v1/scan",
        {"query": "a", "text": "x", "documents": ["y"]},
        "got 2 of text and documents",
    ),
    "unknown field": (
        "/v1/scan",
        {"query": "a", "text": "x", "topk": 3},
        "topk: Extra inputs",
    ),
    "top_k": ("/v1/scan", {"query": "a", "text": "x", "top_k": 0}, "top_k"),
    "a number as text": (
        "/rerank",
        {"query": "a", "texts": [1]},
        "texts.0: Input should be a valid string",
    ),
    "no documents": ("/v2/rerank", {"query": "a"}, "documents: Field required"),
    "top_n": ("/v2/rerank", {"query": "a", "documents": ["x"], "top_n": 0}, "top_n"),
    "instruction": (
        "/v2/rerank",
        {"query": "a", "documents": [], "instruction": "Newest."},
        "instruction: ",
    ),
    "TEI's instruction": (
        "/rerank",
        {"query": "a", "texts": ["x"], "instruction": "Newest."},
        "instruction: ",
    ),
    "tokens": (
        "/v1/rerank",
        {"query": "a", "documents": ["x"], "max_tokens_per_doc": 0},
        "max_tokens_per_doc",
    ),
    "units outside": (
        "/v1/score",
        {"requests": [{"query": "a", "text": "xy", "units": [[0, 3, None]]}]},
        "0 to 3 overlaps",
    ),
    "units overlap": (
        "/v1/score",
        {
            "requests": [
                {"query": "a", "text": "xyz", "units": [[0, 2, None], [1, 3, None]]}
            ]
        },
        "1 to 3",
    ),
    "units of four": (
        "/v1/score",
        {"requests": [{"query": "a", "text": "xyz", "units": [[0, 2, None, 1]]}]},
        "at most 3 items",
    ),
    "collection": (
        "/v1/score",
        {"requests": [], "collection": "x"},
        "collection: String should match",
    ),
    "page of nothing": (
        "/v1/page",
        {"query": "a"},
        "got 0 of text, file and files; expected one",
    ),
    "page of both": (
        "/v1/page",
        {"query": "a", "text": "a", "file": "YQ=="},
        "got 2 of text, file and files",
    ),
    "page of no files": ("/v1/page", {"query": "a", "files": []}, "at least 1 item"),
    "one of several files is broken": (
        "/v1/page",
        {
            "query": "a",
            "files": [
                {"file": encoded(b"Fine."), "name": "a.txt"},
                {"file": encoded(b"%PDF-1.7 broken"), "name": "b.pdf"},
            ],
        },
        "b.pdf",
    ),
    "broken PDF": (
        "/v1/page",
        {"query": "a", "file": encoded(b"%PDF-1.7 broken"), "name": "a.pdf"},
        "a.pdf",
    ),
    "image": (
        "/v1/page",
        {"query": "a", "file": encoded(b"\x89PNG...."), "name": "a.png"},
        "a.png",
    ),
    "empty file": (
        "/v1/page",
        {"query": "a", "file": encoded(b" \n"), "name": "a.txt"},
        "a.txt",
    ),
    "no base64": (
        "/v1/page",
        {"query": "a", "file": "no base64!", "name": "a.txt"},
        "file",
    ),
    "page without a question": ("/v1/page", {"query": " ", "text": "x"}, "query"),
    "top_k of a page": ("/v1/page", {"query": "a", "text": "x", "top_k": 0}, "top_k"),
    "preparation of nothing": (
        "/v1/prepare",
        {},
        "got 0 of text, file and files",
    ),
    "preparation of a broken file": (
        "/v1/prepare",
        {"file": encoded(b"PK\3\4"), "name": "a.docx"},
        "a.docx",
    ),
    "preparation with a question": (
        "/v1/prepare",
        {"query": "a", "text": "x"},
        "query: Extra inputs",
    ),
    "unknown field of a page": (
        "/v1/page",
        {"query": "a", "text": "x", "depth": 3},
        "depth",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_gets_one_clear_line(client: httpx.Client, name: str) -> None:
    path, body, expected = BAD[name]
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert set(answer.json()) == {"message", "error", "error_type"}
    assert expected in answer.json()["message"]
    assert "\n" not in answer.json()["message"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_body_that_is_no_json_of_unicode_is_refused(
    client: httpx.Client, content: bytes
) -> None:
    answer = client.post(
        "/v1/scan", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422, answer.text
    assert answer.json()["message"]


def test_an_unknown_collection_is_named(client: httpx.Client) -> None:
    digest = "0" * 64
    body = {
        "requests": [{"query": "a", "text": "x", "units": [[0, 1, None]]}],
        "collection": digest,
    }
    answer = client.post("/v1/score", json=body)
    assert (answer.status_code, digest in answer.json()["message"]) == (404, True)
    assert client.put(f"/v1/collections/{digest}", content=b"no").status_code == 422
    assert client.get("/nowhere").status_code == 404
    assert client.get("/v1/scan").status_code == 405


DOCUMENTED = re.findall(
    r"```sh\n(curl .*?)```",
    (Path(__file__).parents[3] / "docs" / "serve.md").read_text(),
    re.S,
)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_documented_curl_lines_are_answered(address: str) -> None:
    assert len(DOCUMENTED) >= 2
    for command in DOCUMENTED:
        here = command.replace("http://127.0.0.1:8000", address)
        assert here != command
        run = subprocess.run(
            ["sh", "-c", here], capture_output=True, text=True, timeout=60, check=True
        )
        answer = json.loads(run.stdout)
        assert answer.get("results") or answer.get("documents"), answer


def asked(client: httpx.Client, **body: Any) -> dict[str, Any]:
    """The last line of the answer; the lines before it report progress."""
    answer = client.post("/v1/page", json={"query": "Who left?", **body})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    *before, last = (json.loads(line) for line in answer.text.splitlines())
    assert all(line.keys() == {"progress"} for line in before)
    return dict(last)


def test_the_page_loads_nothing_and_allows_the_report_s_parts(
    client: httpx.Client,
) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    for part in ("default-src 'none'", *map(hash_of, style_and_script(REPORT))):
        assert part in answer.text
    for part in (f'accept="{accepted_files()}"', formats_in_words()):
        assert part in answer.text
    for part in ("src=", 'href="', 'id="token"'):
        assert part not in answer.text.partition("<script>")[0]


def test_a_text_or_a_file_becomes_a_report(
    client: httpx.Client, pdf_of: Callable[..., bytes]
) -> None:
    page = asked(client, text="It rained. The keeper left. She stayed.", top_k=2)[
        "page"
    ]
    assert page.count("<mark ") == 2
    assert "pasted text · 39 characters · 3 sentences" in page
    text = (
        "# Spring\n\nThe keeper left.\n\n# Autumn\n\nShe stayed. <script>x</script>\n"
    )
    page = asked(client, file=encoded(text.encode()), name="log <b>.md")["page"]
    assert "log &lt;b&gt;.md" in page
    assert "Autumn" in page
    assert "<script>x" not in page
    assert "img-src" not in page
    assert "<figure" not in page
    assert "<h1" not in page  # the page above it shows the question


def test_several_files_become_one_report(client: httpx.Client) -> None:
    files = [
        {"file": encoded(b"It rained. The keeper left."), "name": "spring.txt"},
        {"file": encoded(b"She stayed. Nobody left."), "name": "autumn.txt"},
    ]
    page = asked(client, files=files, top_k=4)["page"]
    assert page.count("<mark ") == 4
    assert "spring.txt" in page
    assert "autumn.txt" in page
    assert client.post("/v1/prepare", json={"files": files}).status_code == 204
    many = client.post("/v1/page", json={"query": "a", "files": files * 26})
    assert (many.status_code, "at most 50" in many.json()["message"]) == (413, True)


@pytest.mark.parametrize(
    "given",
    [
        {"text": "It rained. The keeper left."},
        {"file": encoded(b"# Spring\n\nThe keeper left.\n"), "name": "log.md"},
        {
            "file": encoded(b"00:00:01 Ann: The keeper left.\n00:00:09 Bo: Yes.\n"),
            "name": "call.txt",
        },
    ],
)
def test_what_was_prepared_is_not_read_again(
    serve: Callable[..., Any], given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, read, prepared_texts = serve(), [], []
    for name in ("_read_document", "_cut"):
        own = getattr(page_routes, name)
        monkeypatch.setattr(
            page_routes,
            name,
            lambda *a, name=name, own=own: read.append(name) or own(*a),
        )
    prepare = Reading.prepare
    monkeypatch.setattr(
        Reading,
        "prepare",
        lambda own, text, *rest: (
            prepared_texts.append(text) or prepare(own, text, *rest)
        ),
    )
    for _ in range(2):
        assert client.post("/v1/prepare", json=given).status_code == 204
    assert asked(client, **given)["page"].count("<mark ") >= 1
    assert read == ["_read_document", "_cut"]
    assert len(prepared_texts) == 1
    assert (
        asked(client, **given | {"name": "other.txt"})["page"]
        != asked(client, text="She left.")["page"]
    )
    # a pasted text has no name of its own
    assert len(read) == (4 if "text" in given else 6)


def test_a_pdf_is_shown_as_its_pages_with_the_marks(
    client: httpx.Client, pdf_of: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(
        pdf_of([["It rained all day."], [], ["The keeper left", "the tower."]])
    )
    page = asked(client, file=data, name="log.pdf", top_k=1)["page"]
    assert len(re.findall("<figcaption>page [13]</figcaption>", page)) == 1
    assert "page 3" in asked(client, file=data, name="log.pdf")["page"]
    assert re.search(r'content="default-src \'none\'; [^"]*; img-src data:"', page)
    assert re.findall(r'<a href="#(d1-\d)" data-mark="\1"', page) == re.findall(
        '<mark .*?id="(.*?)"', page
    )

    def refused(*_: object) -> None:
        raise RefusedError(429, "too many requests are waiting")

    monkeypatch.setattr(page_routes, "pictures_of", refused)
    without = asked(client, file=data, name="log.pdf", top_k=1)["page"]
    assert "<figure" not in without
    assert without.count("<mark ") == 1


def test_freed_memory_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [0, 0]
    library = SimpleNamespace(malloc_trim=lambda kept: left.pop())
    monkeypatch.setattr(app.sys, "platform", "linux")
    monkeypatch.setattr(app.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(app, "TRIM_SECONDS", 0)
    with pytest.raises(IndexError):
        asyncio.run(app.give_back_memory())
    assert left == []


def test_a_second_question_on_texts_prepares_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []
    index_text = Reading.index_text

    def noted(reading: Reading, text: str, *arguments: Any) -> Any:
        prepared.append(text)
        return index_text(reading, text, *arguments)

    monkeypatch.setattr(Reading, "index_text", noted)
    texts = [f"{text} Once more." for text in TEXTS]
    answers = []
    for _ in range(2):
        body = {"query": QUERY, "documents": texts}
        answers.append(httpx.post(f"{address}/v1/scan", json=body).json())
    assert answers[0] == answers[1]
    assert prepared == texts
