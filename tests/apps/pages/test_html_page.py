"""What all pages begin with."""

import pytest

from spscanner_rag.apps.pages import html_page
from tests.apps.pages.checked_page import check_page

HOSTILE = "</title><script>\n"


def page(title: str, script: str = "") -> str:
    return html_page.render("pages/templates/layout.html", title, "p { color: red }", script)


@pytest.mark.parametrize("script", ["", "let a = 1 < 2;"])
def test_the_policy_allows_what_is_on_the_page(script: str) -> None:
    shown = page(HOSTILE, script)
    assert "<style>p { color: red }</style>" in shown
    assert check_page(shown).script == script


def test_the_title_is_one_short_line() -> None:
    assert len(check_page(page(HOSTILE * 500)).title) <= 200
