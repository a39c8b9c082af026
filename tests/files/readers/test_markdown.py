"""Markdown: the text as it is, and its blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.markdown import blocks_of, read_markdown

BOOK = """---
title: A book
---
# Terms

Intro text here. Second one.

## Prices ##

| Item | Price |
|------|------:|
| Nut  | 3     |
| Bolt | 4     |

- first item
- second item
  goes on

```py
x = 1

# no heading
```

Two lines
of a heading
------------
> quoted text
"""


def shown(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in blocks_of(text)]


def test_blocks_of_a_page() -> None:
    assert shown(BOOK) == [
        ("fence", "---\ntitle: A book\n---"),
        ("heading", "# Terms"),
        ("heading", "## Prices ##"),
        ("header", "| Item | Price |\n|------|------:|"),
        ("row", "| Nut  | 3     |"),
        ("row", "| Bolt | 4     |"),
        ("item", "- first item"),
        ("item", "- second item\n  goes on"),
        ("fence", "```py\nx = 1\n\n# no heading\n```"),
        ("heading", "Two lines\nof a heading\n------------"),
        ("item", "> quoted text"),
    ]
    headings = [(block.level, block.title) for block in blocks_of(BOOK) if block.kind == "heading"]
    assert headings == [(1, "Terms"), (2, "Prices"), (2, "Two lines of a heading")]
    (header,) = {block.header for block in blocks_of(BOOK) if block.kind == "row"}
    assert header is not None
    assert BOOK[slice(*header)] == "| Item | Price |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1. step\n\n   ```\n   # no\n   ```\n\n   more\n\nrest",
            ["item|1. step", "fence|```\n   # no\n   ```", "item|more"],
        ),
        (
            "text\n| a | b |\n|---|:-:|\n| 1 | 2 |\nc\n\nd",
            ["header|| a | b |\n|---|:-:|", "row|| 1 | 2 |", "row|c"],
        ),
        ("> # T #\n> a\n> b\n\n>> c", ["heading|> # T #", "item|> a\n> b", "item|>> c"]),
        ("<!-- \n# no\n-->\n# yes\n<div>\n- no\n\n- yes", ["heading|# yes", "item|- yes"]),
        ("    code\n\n    # code\ntext\n    text", ["fence|code\n\n    # code"]),
        ("```\nnever closed\n# no", ["fence|```\nnever closed\n# no"]),
    ],
)  # fmt: skip
def test_blocks_are_those_of_commonmark(text: str, expected: list[str]) -> None:
    assert ["|".join(block) for block in shown(text)] == expected


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_positions_are_those_of_the_file(ending: str) -> None:
    text = BOOK.replace("\n", ending)
    found = read_markdown("a.md", b"\xef\xbb\xbf" + text.encode())
    assert found.text == text
    if ending == "\r\n":
        expected = [part.replace("\n", ending) for _, part in shown(BOOK)]
        assert [text[block.start : block.end] for block in found.blocks] == expected


@given(st.text(alphabet="#|-`>* \n\r\tab1.~=", max_size=200))
def test_blocks_are_in_order_and_disjoint_and_trimmed(text: str) -> None:
    end = 0
    for block in blocks_of(text):
        assert end <= block.start < block.end <= len(text)
        assert text[block.start : block.end] == text[block.start : block.end].strip()
        assert block.header is None or block.header[1] <= block.start
        end = block.end
