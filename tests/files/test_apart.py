"""Large files are read in a separate process, with the same result."""

import time

import pytest

from spscanner_rag.files import reading
from spscanner_rag.files.reading import read_bytes
from tests.word import a_list, docx, item, level, paragraph

LIST = docx(
    item("One.") * 3 + paragraph("Two — é \U0001f600."),
    numbering=a_list(level(0, "%1.")),
)
FILES = {
    "a.md": b"# One\r\n\n- Two\n- Three \xc3\xa9\n\n|a|b|\n|-|-|\n|1|2|\n",
    "a.html": (
        b"<h1>One</h1><p>Two.<ul><li>Three</ul><table><tr><th>a<th>b<tr><td>1<td>2</table>"
    ),
    "a.csv": b"name,age\nAnn,3\nBob,4\n",
    "a.vtt": (
        b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>Who left?\n\n00:02.000 -->"
        b" 00:03.000\n<v Bob>I did.\n"
    ),
    "a.log": b"\xef\xbb\xbf12:00 begun\n  at one\n12:01 ended\n",
    "a.txt": b"00:01 Ann: Who?\n00:02 Bob: I.\n00:03 Ann: Why?\n",
    "a.docx": LIST,
}


@pytest.mark.parametrize("name", FILES)
def test_a_process_reads_what_this_one_reads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = read_bytes(name, FILES[name])
    monkeypatch.setattr(reading, "AT_ONCE_BYTES", 0)
    assert read_bytes(name, FILES[name]) == here


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.csv", "a.docx"])
def test_reading_ends_when_nobody_waits_or_time_is_up(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "AT_ONCE_BYTES", 0)
    asked: list[float] = []

    def stop() -> None:
        asked.append(time.monotonic())
        raise InterruptedError

    with pytest.raises(InterruptedError):
        read_bytes(name, FILES[name], check=stop)
    assert len(asked) == 1
    with pytest.raises(
        ValueError, match=rf"{name}: got .* that takes more than 0 seconds"
    ):
        read_bytes(name, FILES[name], seconds=0)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.md", b"a\xff"), ("\udc00 é.csv", b"a\0"), ("a\0.log", b"\xff\xfe")],
)
def test_what_is_refused_there_is_told_here(
    name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"got .*; expected") as here:
        read_bytes(name, data)
    monkeypatch.setattr(reading, "AT_ONCE_BYTES", 0)
    with pytest.raises(ValueError, match=r"got .*; expected") as there:
        read_bytes(name, data)
    assert str(there.value) == str(here.value)


def test_a_small_document_that_unpacks_to_much_is_read_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = docx(paragraph("a") + "<a/>" * 100_000)
    assert len(data) < reading.AT_ONCE_BYTES / 20
    with pytest.raises(ValueError, match="more than 0 seconds"):
        read_bytes("a.docx", data, seconds=0)
