"""Documents: the line, column, page and headings of a position."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.documents import PageStart, TextFile, name_of
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.blocks import Block


@given(st.text(alphabet="ab\r\n\u2028", max_size=30))
def test_lines_end_at_lf_crlf_and_cr(text: str) -> None:
    document = TextFile("a", text)
    for offset in range(len(text)):
        before = text[:offset]
        if text[offset] == "\n" and before.endswith("\r"):  # within CR LF
            before = before[:-1] + "x"
        lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert document.position(offset) == (len(lines), len(lines[-1]) + 1)


def test_names_and_places() -> None:
    assert [name_of(path) for path in ("-", "a.txt", "")] == [
        "standard input",
        "a.txt",
        "",
    ]
    assert TextFile("a", "one\ntwo").place(5, 7) == {
        "start": 5,
        "end": 7,
        "line": 2,
        "column": 2,
    }


def test_headings_above_a_position() -> None:
    text = "Before. A. One. B. Two. C. Three. D. Four."
    levels = {"A.": 1, "B.": 2, "C.": 3, "D.": 2}
    blocks = tuple(
        Block(
            text.index(title),
            text.index(title) + 2,
            "heading",
            level=level,
            title=title,
        )
        for title, level in levels.items()
    )
    document = TextFile("a.md", text, blocks)
    found = [
        document.headings(text.index(word))
        for word in ("Before", "One", "Two", "Three", "Four")
    ]
    assert found == [(), ("A.",), ("A.", "B."), ("A.", "B.", "C."), ("A.", "D.")]
    assert document.section(text.index("Three")) == "C."
    assert document.place(0, 6)["headings"] == []
    assert document.place(text.index("Two"), len(text))["headings"] == ["A.", "B."]
    assert document.page(3) is None
    assert document.page_texts() == []


@pytest.mark.parametrize(
    ("name", "content", "word", "place"),
    [
        (
            "a.csv",
            "Town,Population\nSaltmere,812\nMoor,40\n",
            "Moor",
            "3:1 · row 3: Town,Population",
        ),
        ("a.tsv", "id\tname\n1\tAnne\n2\tBob\n", "Bob", "3:3 · row 3: id name"),
        (
            "a.md",
            "Prices:\n\n| Item | EUR |\n|---|---|\n| Rope | 4 |\n",
            "Rope",
            "5:3 · row 2: | Item | EUR |",
        ),
        (
            "a.md",
            "# Shop\n\n| Item | EUR |\n|---|---|\n| Rope | 4 |\n",
            "Rope",
            "5:3 · Shop",
        ),
        ("a.csv", "Town,Population\nSaltmere,812\n", "Town", "1:1"),
        (
            "a.md",
            "Prices:\n\n| Item | EUR |\n|---|---|\n| Rope | 4 |\n\nAll.\n",
            "All",
            "7:1",
        ),
    ],
)
def test_a_row_of_a_table_stands_under_its_header(
    name: str, content: str, word: str, place: str
) -> None:
    document = read_bytes(name, content.encode())
    assert document.where(document.text.index(word)) == place


def test_the_page_of_a_position() -> None:
    pages = (
        PageStart(0, 1, "i"),
        PageStart(4, 2, "ii"),
        PageStart(4, 3, "1"),
        PageStart(9, 4, "4"),
    )
    document = TextFile("a.pdf", "One.\nTwo.\nLast.", pages=pages)
    assert [document.page(offset) for offset in (0, 3, 4, 8, 9, 14)] == [
        pages[0], pages[0], pages[2], pages[2], pages[3], pages[3]
    ]  # fmt: skip
    assert [document.section(offset) for offset in (0, 9)] == ["page i (1)", "page 4"]
    assert document.place(5, 8) == {
        "start": 5, "end": 8, "line": 2, "column": 1, "page": "1", "page_number": 3
    }  # fmt: skip
    assert [text for _, text in document.page_texts()] == [
        "One.",
        "",
        "\nTwo.",
        "\nLast.",
    ]
