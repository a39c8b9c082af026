"""Document files: what is refused, what is read, and positions in it."""

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.documents import TextFile, name_of, read_text_files


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "got an empty file; expected text to scan"),
        (b"\xef\xbb\xbf", "got an empty file"),
        (b" \r\n\t\n", "got only white space"),
        (b"caf\xe9", r"got byte 0xe9 at 3, not UTF-8; expected UTF-8 text: .*iconv"),
        (b"ok \xed\xa0\x80", "got byte 0xed at 3"),  # a surrogate
        (b"ELF\0\1", r"got binary data \(a zero byte at 3\); expected UTF-8 text"),
        (b"%PDF-1.7 \n", "got a PDF; expected UTF-8 text: extract it first, for example with pdftotext"),
        ("text".encode("utf-16"), "got UTF-16; expected UTF-8"),
        ("text".encode("utf-16-be"), "got binary data"),
    ],
)
def test_files_that_are_not_text_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_text_files([str(tmp_path / "file")])


def test_paths_that_are_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got a folder; expected a text file"):
        read_text_files([str(tmp_path)])
    with pytest.raises(ValueError, match="no such file; expected a text file"):
        read_text_files([str(tmp_path / "absent")])
    with pytest.raises(ValueError, match="cannot be read"):
        read_text_files(["a\0b"])
    with pytest.raises(ValueError, match="cannot be read"):
        read_text_files(["x" * 5000])
    with pytest.raises(ValueError, match="got standard input more than once"):
        read_text_files(["-", "-"])


def test_text_is_as_it_was_but_for_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    (document,) = read_text_files([str(tmp_path / "a")])
    assert document.text == "one\r\ntwo\rthree\n"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Ωμέγα\r\n".encode())))
    assert read_text_files(["-"]) == [TextFile("-", "Ωμέγα\r\n")]


def test_lines_end_at_lf_crlf_and_cr() -> None:
    document = TextFile("a", "ab\ncd\r\n\rx\u2028y")
    positions = [document.position(offset) for offset in range(len(document.text))]
    assert positions == [
        *[(1, 1), (1, 2), (1, 3)],
        *[(2, 1), (2, 2), (2, 3), (2, 4)],
        (3, 1),
        *[(4, 1), (4, 2), (4, 3)],
    ]


@given(st.text(alphabet="ab\r\n", max_size=30))
def test_positions_against_universal_newlines(text: str) -> None:
    document = TextFile("a", text)
    for offset in range(len(text)):
        before = text[:offset]
        if text[offset] == "\n" and before.endswith("\r"):
            continue  # inside CR LF
        lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert document.position(offset) == (len(lines), len(lines[-1]) + 1)


def test_names_and_places(tmp_path: Path) -> None:
    assert [name_of(path) for path in ("-", "a.txt", "")] == ["standard input", "a.txt", ""]
    assert TextFile("a", "one\ntwo").place(5, 7) == {"start": 5, "end": 7, "line": 2, "column": 2}
