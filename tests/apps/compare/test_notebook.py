"""A comparison as Python and a notebook show it."""

from html.parser import HTMLParser

from tests.apps.compare.fakes import comparison_of
from tests.apps.pages.checked_page import HOSTILE


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    comparison = comparison_of(HOSTILE)

    class Frame(HTMLParser):
        attributes: dict[str, str | None]

        def handle_starttag(
            self, tag: str, attrs: list[tuple[str, str | None]]
        ) -> None:
            assert tag == "iframe"
            self.attributes = dict(attrs)

    frame = Frame()
    frame.feed(comparison._repr_html_())
    assert repr(comparison).endswith(
        f"characters={len(HOSTILE)}, retrievers: a, b, chunks)"
    )
    assert frame.attributes["sandbox"] == "allow-scripts"
    assert frame.attributes["srcdoc"] == comparison.page
