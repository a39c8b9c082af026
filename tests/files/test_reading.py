"""Reading documents from files: what is read, and what is refused."""

import io
import os
import sys
from pathlib import Path

import pytest

from spscanner_rag import files
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.formats import FORMATS, formats_in_words
from spscanner_rag.files.reading import read
from tests.word import docx


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
            b"%!PS-Adobe-3.0",
            f"got PostScript; expected {formats_in_words()}: save it as one of these",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1",
            "got an old or an encrypted Office file; expected text",
        ),
        (
            b"PK\x03\x04 and no more",
            "got a ZIP archive that is not a complete DOCX, .* or ODT; expected text",
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
    for name, file_format in FORMATS.items():
        monkeypatch.setitem(FORMATS, name, file_format._replace(most_bytes=100))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"word " * 1000)))
    with pytest.raises(
        ValueError, match="standard input: got 0 MiB; expected at most 0 MiB of text"
    ):
        read("-")


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
