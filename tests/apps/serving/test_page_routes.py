"""The page at `/` and what it asks: documents of every kind become a report, or one clear line."""

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from spscanner_rag.apps.pages.html_page import hash_of
from spscanner_rag.apps.pages.report import report_script, report_style

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

QUERY = "Who left?"
TEXT = "It rained. The keeper left. She stayed."


def asked(client: httpx.Client, **body: Any) -> dict[str, Any]:
    """The last line of the answer; those before it say how far the reading is."""
    answer = client.post("/v1/page", json={"query": QUERY, **body})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    *before, last = (json.loads(line) for line in answer.text.splitlines())
    assert all(line.keys() == {"progress"} for line in before)
    return dict(last)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_page_loads_nothing_and_allows_the_report_s_parts(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"
    page = answer.text
    assert "default-src 'none'" in page
    assert hash_of(report_style()) in page
    assert hash_of(report_script()) in page
    assert "src=" not in page.partition("<script>")[0]
    assert 'href="' not in page
    assert 'id="token"' not in page


def test_a_pasted_text_becomes_a_report(client: httpx.Client) -> None:
    page = asked(client, text=TEXT, top_k=2)["page"]
    assert page.count("<mark ") == 2
    assert "pasted text · 39 characters · 3 sentences" in page


def test_a_file_is_read_as_the_command_line_reads_it(client: httpx.Client) -> None:
    text = "# Spring\n\nThe keeper left.\n\n# Autumn\n\nShe stayed. <script>x</script>\n"
    page = asked(client, file=encoded(text.encode()), name="log <b>.md")["page"]
    assert "log &lt;b&gt;.md" in page
    assert "Autumn" in page
    assert "<script>x" not in page
    html = b"<!doctype html><title>t</title><script>bad()</script><p>The keeper left.</p>"
    page = asked(client, file=encoded(html), name="a.html")["page"]
    assert "bad()" not in page
    assert "The keeper left." in page


def test_a_pdf_has_pages(client: httpx.Client, pdf_of: Callable[..., bytes]) -> None:
    data = pdf_of([["It rained all day."], ["The keeper left the tower."]])
    assert "page 2" in asked(client, file=encoded(data), name="log.pdf")["page"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "got both or neither of text and file"),
        ({"text": "a", "file": "YQ=="}, "got both or neither of text and file"),
        ({"file": encoded(b"%PDF-1.7 broken"), "name": "a.pdf"}, "a.pdf"),
        ({"file": encoded(b"\x89PNG...."), "name": "a.png"}, "a.png"),
        ({"file": encoded(b" \n"), "name": "a.txt"}, "a.txt"),
        ({"file": "no base64!", "name": "a.txt"}, "file"),
        ({"text": TEXT, "query": " "}, "query"),
        ({"text": TEXT, "top_k": 0}, "top_k"),
        ({"text": TEXT, "depth": 3}, "depth"),
    ],
)
def test_what_cannot_be_asked_gets_one_line(client: httpx.Client, body: dict[str, Any], told: str) -> None:
    answer = client.post("/v1/page", json={"query": QUERY, **body})
    assert answer.status_code == 422
    assert told in answer.json()["message"]
    assert "\n" not in answer.json()["message"]


def test_limits_hold_for_what_a_file_contains(serve: Callable[..., httpx.Client]) -> None:
    client = serve(request_characters=100)
    answer = client.post(
        "/v1/page", json={"query": QUERY, "file": encoded(b"He left. " * 20), "name": "a.txt"}
    )
    assert answer.status_code == 413


def test_with_a_token_the_page_is_open_and_its_questions_are_not(serve: Callable[..., httpx.Client]) -> None:
    client = serve(token="secret")
    page = client.get("/")
    assert page.status_code == 200
    assert 'id="token"' in page.text
    assert "secret" not in page.text
    assert client.post("/v1/page", json={"query": QUERY, "text": TEXT}).status_code == 401
    given = {"authorization": "Bearer secret"}
    assert client.post("/v1/page", json={"query": QUERY, "text": TEXT}, headers=given).status_code == 200
