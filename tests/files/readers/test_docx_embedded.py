"""Parts that programs embed whole in a Word document."""

import io
import zipfile

import pytest

from spscanner_rag.files.documents import TextFile
from tests.small_files import OFFICE, relations, zipped
from tests.word import docx, paragraph, row, table

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.docx import read_docx

CHUNK = f'<w:altChunk xmlns:r="{OFFICE}" r:id="c"/>'
WEB_ARCHIVE = (
    b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n"
    b"Content-Type: image/png\n\nx\n--b\nContent-Type: text/html\n\n"
    b"<html><h1>Letter</h1><p>He left.</p></html>\n--b--\n"
)


def read(name: str, content: bytes, body: str = "") -> TextFile:
    """Read a document that embeds a part between two paragraphs."""
    parts: dict[str, str | bytes] = {}
    body = body or paragraph("Before.") + CHUNK + paragraph("After.")
    with zipfile.ZipFile(io.BytesIO(docx(body))) as archive:
        for part in archive.namelist():
            parts[part] = archive.read(part)
    parts["word/_rels/document.xml.rels"] = relations(("c", "aFChunk", name))
    parts[f"word/{name}"] = content
    return read_docx(zipped(parts))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.htm", b"<p>He left.</p>", "He left."),
        ("a.bin", b"<!doctype html><html><p>He left.</p>", "He left."),
        ("a.txt", b"He left.", "He left."),
        ("a.mht", WEB_ARCHIVE, "Letter\n\nHe left."),
        ("a.bin", WEB_ARCHIVE, "Letter\n\nHe left."),
        ("a.eml", b"Subject: x\nContent-Type: text/plain\n\nHe left.", "He left."),
    ],
)
def test_an_embedded_part_is_read_in_its_place(
    name: str, content: bytes, text: str
) -> None:
    document = read(name, content)
    assert document.text == f"Before.\n\n{text}\n\nAfter."
    assert document.notes == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.docx", b"PK"),
        ("a.eml", b"Content-Type: image/png\n\nx"),
        ("a.htm", b"<div>" * 5000 + b"He left."),
    ],
)
def test_what_is_no_page_is_left_out_with_a_note(name: str, content: bytes) -> None:
    document = read(name, content)
    assert document.text == "Before.\n\nAfter."
    (note,) = document.notes
    assert note.startswith(f"left out the embedded part word/{name}, which is no web")


def test_a_part_that_is_not_in_the_file_has_a_note() -> None:
    document = read_docx(docx(paragraph("Before.") + CHUNK))
    assert document.text == "Before."
    assert document.notes == ("left out an embedded part that is not in the file",)


def test_a_part_in_a_cell_stays_in_its_row() -> None:
    cell = f"<w:tc>{CHUNK}</w:tc>"
    body = table(row("Part", "Letter"), row("one", cell))
    assert read("a.htm", b"<p>He left.</p>", body).text == (
        "Part | Letter\none | He left."
    )
    document = read("a.zip", b"PK", body)
    assert document.text == "Part | Letter\n\none"
    assert len(document.notes) == 1


def test_words_of_a_diagram_follow_its_paragraph() -> None:
    parts: dict[str, str | bytes] = {}
    drawing = (
        f"<w:drawing><x:relIds xmlns:x='d' xmlns:r='{OFFICE}' r:dm='d'/></w:drawing>"
    )
    body = f"<w:p><w:r><w:t>See:</w:t>{drawing}</w:r></w:p>" + paragraph("After.")
    with zipfile.ZipFile(io.BytesIO(docx(body))) as archive:
        for part in archive.namelist():
            parts[part] = archive.read(part)
    parts["word/_rels/document.xml.rels"] = relations(("d", "diagramData", "d.xml"))
    parts["word/d.xml"] = "<m xmlns:a='a'><a:p><a:r><a:t>Council</a:t></a:r></a:p></m>"
    assert read_docx(zipped(parts)).text == "See:\n\nCouncil\n\nAfter."
