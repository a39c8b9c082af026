"""Reading document files, their positions, and writing out what cannot be shown."""

import io
import os
import stat
import sys
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.documents import TextFile, read_text_files
from spscanner_rag.files.output import check_output
from spscanner_rag.files.whole_file import write_whole
from spscanner_rag.views.escaping import one_line, split_unshowable, visible


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


def test_what_cannot_be_shown_is_written_out() -> None:
    assert visible("a\x1b]8;;x\x07b") == r"a\x1b]8;;x\x07b"
    assert visible("\x9b31m \x7f \b \r") == r"\x9b31m \x7f \x08 \x0d"
    assert visible("\u202eevil\u2066\ud800\U000e0041") == r"\u202eevil\u2066\ud800\U000e0041"
    assert visible("[bold] [/INST] <script>") == "[bold] [/INST] <script>"
    assert visible("tab\tand\r\nlines\n") == "tab\tand\nlines\n"
    assert visible("Ωμέγα 東京 👩‍👩‍👧 שלום") == "Ωμέγα 東京 👩‍👩‍👧 שלום"
    assert one_line(" a\n\n b\t\u00a0c\x0bd ") == r"a b c\x0bd"


@given(st.text(st.characters(), max_size=40) | st.text("\x1b\r\n\u202e\ud800\x85a", max_size=20))
def test_nothing_dangerous_is_left(text: str) -> None:
    shown = visible(text)
    assert "".join(split_unshowable(shown)) == shown
    shown.encode()  # no lone surrogate
    for character in shown:
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in {
            *("LRE", "RLE", "LRO", "RLO", "PDF"),
            *("LRI", "RLI", "FSI", "PDI"),
        }


def test_output_is_checked_before_the_work(tmp_path: Path) -> None:
    document = tmp_path / "document.txt"
    document.write_text("text")
    (tmp_path / "link.txt").symlink_to(document)
    with pytest.raises(ValueError, match="got a folder; expected a file"):
        check_output(tmp_path, [])
    with pytest.raises(ValueError, match="there is no folder"):
        check_output(tmp_path / "absent" / "out.html", [])
    for same in (document, tmp_path / "link.txt"):
        with pytest.raises(ValueError, match="got a document to scan"):
            check_output(same, ["-", str(document)])
    check_output(tmp_path / "new.html", [str(document)])
    check_output(Path(os.devnull), [str(document)])


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.html"
    out.write_text("old")
    out.chmod(0o640)
    with pytest.raises(UnicodeEncodeError):
        write_whole(out, "\ud800")

    def disk_full(descriptor: int) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", disk_full)
        with pytest.raises(OSError, match="no space"):
            write_whole(out, "new")
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    write_whole(out, "new Ω")
    assert out.read_text(encoding="utf-8") == "new Ω"
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]


def test_a_link_stays_and_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "usual").touch()
    assert (tmp_path / "target").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_named_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "through")
    reader.join(timeout=10)
    assert read == ["through"]
