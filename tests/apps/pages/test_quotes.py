"""Quotes in lists: rows of Markdown tables lose their lines, and nothing else changes."""

import pytest

from spscanner_rag.apps.pages.quotes import readable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("She fell.", "She fell."),
        ("| brig | 12 shillings |", "brig · 12 shillings"),
        ("| vessel | fee |\n|---|:-:|\n| brig |  |", "vessel · fee\nbrig"),
        ("| a | b |\nand more", "| a | b |\nand more"),
        ("|---|---|", "|---|---|"),
        ("", ""),
        ("  indented", "  indented"),
        ("a | b", "a | b"),
    ],
)
def test_rows_of_tables(text: str, shown: str) -> None:
    assert readable(text) == shown
