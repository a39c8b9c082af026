"""Reading documents from files and folders: what is read, what is refused, and how that is reported."""

import io
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag import files
from spscanner_rag.files import reading
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import read, read_all
from tests.word import docx, paragraph


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got an empty file; expected text to scan"),
        (b"\xef\xbb\xbf", "got an empty file"),
        (b" \r\n\t\n", "got only white space"),
        (b"caf\xe9", r"got byte 0xe9 at 3, not UTF-8; expected UTF-8 text: .*iconv"),
        (b"ok \xed\xa0\x80", "got byte 0xed at 3"),  # a surrogate
        (b"ELF\0\1", r"got binary data \(a zero byte at 3\); expected UTF-8 text"),
        ("text".encode("utf-32"), "got binary data"),
        ("text".encode("utf-16-be"), "got binary data"),
        (
            b"{\\rtf1 text}",
            (
                "got RTF; expected text, Markdown, HTML, PDF or DOCX: save it as one of"
                " these"
            ),
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1",
            "got an old or an encrypted Office file; expected text",
        ),
        (
            b"PK\x03\x04 and no more",
            "got a ZIP archive that is not a complete DOCX; expected text",
        ),
    ],
)
def test_files_that_are_not_text_are_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "file")


def test_paths_that_are_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="got a folder; expected a file: name the files in it"
    ):
        read(tmp_path)
    with pytest.raises(ValueError, match="no such file; expected a document"):
        read(tmp_path / "absent")
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(ValueError, match="cannot be read"):
            read(name)
    with pytest.raises(ValueError, match="got standard input more than once"):
        read_all(["-", "-"], print)


def test_text_is_as_it_was_but_for_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert files.read(tmp_path / "a").text == "one\r\ntwo\rthree\n"
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("Ωμέγα\r\n".encode()))
    )
    assert read("-") == TextFile("-", "Ωμέγα\r\n")


def test_the_ending_or_else_the_beginning_says_the_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pdf_of: Callable[..., bytes]
) -> None:
    page, words = b"<!DOCTYPE html><p>One.", docx(paragraph("One."))
    for name, data in (
        ("a.md", b"# T\n\nOne."), ("a.HTM", b"<p>One."), ("saved", page), ("a.aspx", page),
        ("a.pdf", pdf_of([["One."]])), ("b", pdf_of([["One."]])), ("a.DOCX", words), ("c", words),
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
            (
                "got a ZIP archive that is not a complete DOCX; expected text,"
                " Markdown, HTML, PDF or DOCX"
            ),
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


@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "a.html", "a.md", "a.docx", "a"])
def test_a_gigabyte_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.write(b"%PDF-1.7\n")
        os.truncate(file.fileno(), 2**30)
    with pytest.raises(
        ValueError,
        match=rf"{name}: got 1,024 MiB; expected at most \d+ MiB of \w+: split it",
    ):
        read(tmp_path / name)


def test_an_endless_stream_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {
        kind: form._replace(most_bytes=100) for kind, form in reading.FORMATS.items()
    }
    monkeypatch.setattr(reading, "FORMATS", small)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"word " * 1000)))
    with pytest.raises(
        ValueError, match="standard input: got 0 MiB; expected at most 0 MiB of text"
    ):
        read("-")


def test_a_folder_is_read_and_what_is_left_out_is_told(
    tmp_path: Path, pdf_of: Callable[..., bytes]
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name, data in (
        ("b.txt", b"B."), ("a.md", b"A."), ("inner/c.pdf", pdf_of([["C."], [], []])), ("inner/d.html", b"<p>D."),
        ("broken.pdf", b"%PDF-1.7 and no more"), ("empty.txt", b""), ("x.png", b""), ("y.css", b""),
        ("LICENSE", b""),         (".hidden/h.txt", b"H."), (".h.txt", b"H."),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
    told: list[str] = []
    documents = read_all([str(tmp_path), str(tmp_path / "b.txt")], told.append)
    names = [os.path.relpath(document.path, tmp_path) for document in documents]
    assert names == [
        "a.md",
        "b.txt",
        *(os.path.join("inner", name) for name in ("c.pdf", "d.html")),
        "b.txt",
    ]
    assert len(told) == 4
    assert told[0].startswith(
        f"left out: {tmp_path / 'broken.pdf'}: got a PDF that cannot be read"
    )
    assert told[1].startswith(f"left out: {tmp_path / 'empty.txt'}: got an empty file")
    assert (
        told[2] == f"{tmp_path}: left out 3 files with other endings (.css, .png, none)"
    )
    assert told[3].endswith(
        "c.pdf: 2 of 3 pages have no text; scanned pages need OCR first"
    )
    with pytest.raises(
        ValueError, match="broken"
    ):  # a file given by name is not left out
        read_all([str(tmp_path / "broken.pdf"), str(tmp_path)], told.append)


def test_a_folder_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"in which nothing can be read: no file in it ends in \.txt, "
    ):
        read_all([str(tmp_path)], print)
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    with pytest.raises(
        ValueError,
        match=r"nothing can be read: .*a\.txt: got an empty file.* \(and 1 more\)$",
    ):
        read_all([str(tmp_path)], print)


@pytest.mark.parametrize(
    ("name", "data", "module"),
    [
        ("a.pdf", b"%PDF-1.7", "pypdfium2"),
        ("a.html", b"<p>One.", "lxml"),
        ("a.docx", b"", "lxml"),
    ],
)
def test_a_missing_extra_names_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(data or docx())
    with pytest.raises(
        ImportError, match=rf'needs {module}: pip install "\.\[files\]"'
    ):
        read(tmp_path / name)
