"""Texts that look like the path of a file."""

import pytest

from spscanner_rag.files.formats import ENDINGS
from spscanner_rag.text.file_names import looks_like_path


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_file_that_is_read_has_a_name_that_is_known(ending: str) -> None:
    assert looks_like_path(f"report{ending}")
    assert looks_like_path(f"/home/ann/May{ending.upper()}")


@pytest.mark.parametrize(
    "path",
    [
        "a.pdf",
        " a.pdf\n",
        "./a b.md",
        "C:\\Ann\\May 2024.docx",
        "../x/y.html",
        "~/a.txt",
    ],
)
def test_paths(path: str) -> None:
    assert looks_like_path(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".pdf",
        "report",
        "Read it.",
        "See a.pdf",
        "It stands in reports/2024.pdf",
        "a.pdf\nb.pdf",
        "https://example.com/a.pdf",
        "x" * 400 + ".pdf",
        "version 1.txt",
    ],
)
def test_texts(text: str) -> None:
    assert not looks_like_path(text)
