"""The cache among other files, and entries that are anything but what was written."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.apps.cache.entries import EntryFolder, entry_name
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.files import read
from tests.attack.conftest import Attempt

pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="the system has no named pipes"
)

PAGE = "<h1>Treaty</h1><p>Anne signed it.</p>"
NAME = entry_name("text", b"key")
FOREIGN = [
    "photo.jpg",
    "text.txt",
    "text-0.entry",
    NAME.upper(),
    f"{NAME}.bak",
    f"x{NAME}",
    f"{NAME}\n",
    f"{NAME[:-1]}",
    f".{NAME}.part",
    f".{NAME}.{'g' * 32}.part",
    "vectors-1.npz",
    NAME.replace("text", "texts"),
    NAME.replace("text", "secret"),
    ".hidden",
]


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_of_the_folder_stay(
    name: str, tmp_path: Path, attempt: Attempt
) -> None:
    (tmp_path / name).write_bytes(b"x" * 5_000)
    os.utime(tmp_path / name, (1, 1))
    (tmp_path / NAME.replace(NAME[5:9], "0000")).mkdir()
    folder = EntryFolder(tmp_path, 400)
    with attempt("cache: other files"):
        for number in range(20):
            folder.put(entry_name("text", bytes([number])), b"content")
        assert (tmp_path / name).read_bytes() == b"x" * 5_000
        assert len(list(tmp_path.glob("text-*.entry"))) < 20


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda entry: entry.symlink_to(target)


def _holding(content: bytes) -> Callable[[Path], None]:
    return lambda entry: entry.write_bytes(content) and None


def _socket(entry: Path) -> None:
    before = os.getcwd()
    os.chdir(entry.parent)  # the path may be too long for a socket
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(entry.name)
    finally:
        os.chdir(before)


def _sparse(entry: Path) -> None:
    with entry.open("wb") as file:
        file.truncate(2**40)


def _unreadable(entry: Path) -> None:
    entry.write_bytes(b"x" * 99)
    entry.chmod(0)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "an endless device": _link_to("/dev/zero"),
    "a full device": _link_to("/dev/full"),
    "a terminal": _link_to("/dev/tty"),
    "a link to nothing": _link_to("nothing"),
    "a link to itself": _link_to(NAME),
    "a link to a document": _link_to("../page.html"),
    "a terabyte": _sparse,
    "nothing": _holding(b""),
    "other bytes": _holding(b"\0" * 999),
    "our mark alone": _holding(b"spscanner entry 1\n"),
    "our mark and no digest": _holding(b"spscanner entry 1\n" + b"\0" * 64),
    "gzip": _holding(b"\x1f\x8b\x08\0" * 99),
    "unreadable": _unreadable,
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_entry_is_made_again(
    kind: str, tmp_path: Path, attempt: Attempt
) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    cache = ReadCache(tmp_path / "cache")
    vectors = SentenceVectors.of(np.random.default_rng(0).normal(size=(5, 8)))
    cache.read(page)
    cache.put("encoder", "key", vectors)
    for entry in list(cache.folder.iterdir()):
        entry.unlink()
        ODD[kind](entry)
    with attempt("cache: odd entries"):
        assert cache.read(page) == read(page)
        assert cache.get("encoder", "key") is None
        cache.put("encoder", "key", vectors)
        again = cache.get("encoder", "key")
    assert page.read_text() == PAGE
    if kind != "a folder":  # which may hold files of the user
        assert again is not None
        assert np.array_equal(again.rows, vectors.rows)
