"""What all pages begin with."""

import base64
import hashlib
import re

from spscanner_rag.apps.pages.html_page import page_head


def test_policy_names_what_is_on_the_page() -> None:
    style, script = "p { color: red }", "let a = 1;"
    head = page_head("</title><script>", style, script)
    assert "<script>" not in head
    assert f"<style>{style}</style>" in head
    for kind, content in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in head
    assert "default-src 'none'" in head
    assert "script-src" not in page_head("t", style)


def test_title_is_one_short_line() -> None:
    title = re.search("<title>(.*)</title>", page_head("a\nb" * 500, ""))
    assert title is not None
    assert len(title[1]) <= 200
