"""The format of a file, by its ending or its first bytes."""

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.files.formats import formats_in_words
from spscanner_rag.files.reading import read
from tests.word import docx, paragraph


def test_the_ending_or_else_the_beginning_says_the_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pdf_of: Callable[..., bytes]
) -> None:
    page, words = b"<!DOCTYPE html><p>One.", docx(paragraph("One."))
    for name, data in (
        ("a.md", b"# T\n\nOne."), ("a.HTM", b"<p>One."), ("saved", page),
        ("a.aspx", page), ("a.pdf", pdf_of([["One."]])), ("b", pdf_of([["One."]])),
        ("a.DOCX", words), ("c", words),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        document = read(tmp_path / name)
        assert document.text.removeprefix("# T\n\n") == "One."
        assert bool(document.pages) == (name in ("a.pdf", "b"))
    assert read(tmp_path / "a.md").headings(5) == ("T",)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pdf_of([["One."]]))))
    assert read("-").text == "One."
    (tmp_path / "page.txt").write_bytes(page)
    assert (
        read(tmp_path / "page.txt").text == page.decode()
    )  # a text about HTML, as its extension says


def test_wrong_endings(tmp_path: Path, pdf_of: Callable[..., bytes]) -> None:
    sheet = io.BytesIO()
    with zipfile.ZipFile(sheet, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("notes.txt", "It rained.")
    for name, data, message in (
        (
            "a.txt",
            pdf_of([["One."]]),
            "got PDF; expected text, as its ending says: give it the ending .pdf",
        ),
        (
            "a.pdf",
            docx(),
            "got DOCX; expected PDF, as its ending says: give it the ending .docx",
        ),
        (
            "b.pdf",
            b"<html><p>Log in",
            "got HTML; expected PDF, as its ending says: give it the ending .html",
        ),
        (
            "c.pdf",
            b"plain",
            "got a file that does not begin as PDF does; .*saved completely",
        ),
        ("a.docx", b"plain", "got a file that does not begin as DOCX does"),
        (
            "a.xlsx",
            sheet.getvalue(),
            "got a workbook that cannot be read .*; expected a complete file",
        ),
        (
            "archive.xlsx",
            other.getvalue(),
            "got a ZIP archive that is not a complete DOCX, .* or ODT; expected "
            + formats_in_words(),
        ),
        (
            "a.html",
            b"<html><script>x()</script></html>",
            "got HTML without text; expected text to scan",
        ),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name)
