"""Files are opened below a folder, and no link leads out of it."""

import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from spscanner_rag.apps.mcp.open_below import open_below
from spscanner_rag.apps.mcp.readable_files import ReadableFiles
from spscanner_rag.files.reading import read_bytes

pytestmark = pytest.mark.skipif(
    os.open not in os.supports_dir_fd, reason="folders have no descriptors here"
)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder with what may be read, beside what may not."""
    (tmp_path / "secret.txt").write_text("SECRET")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a.txt").write_text("SECRET")
    folder = tmp_path / "open"
    (folder / "inner" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("It rained.")
    (folder / "inner" / "deep" / "a.txt").write_text("It rained.")
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "link-in.txt").symlink_to("a.txt")
    (folder / "up").symlink_to("..")
    (folder / "inner" / "out").symlink_to("../../secrets")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe.txt")
    return folder


@pytest.mark.parametrize(
    "parts", [("a.txt",), ("inner", "deep", "a.txt"), ("inner", "..", "a.txt")]
)
def test_a_file_below_is_opened(parts: tuple[str, ...], open_folder: Path) -> None:
    with open(open_below(open_folder, parts)) as file:
        assert file.read() == "It rained."


@pytest.mark.parametrize(
    "parts",
    [
        ("link.txt",),
        ("link-in.txt",),
        ("up", "secret.txt"),
        ("inner", "out", "a.txt"),
        ("up", "open", "a.txt"),
        ("loop",),
        ("loop", "a.txt"),
        ("pipe.txt",),
        ("inner",),
        ("missing.txt",),
        ("a.txt", "a.txt"),
        ("inner", "deep", "..", "out", "a.txt"),
    ],
)
def test_nothing_else_is_opened(parts: tuple[str, ...], open_folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    with pytest.raises(OSError):  # noqa: PT011 - of any kind
        open_below(open_folder, parts)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("swapped", ["a.txt", "inner", "inner/deep"])
def test_what_is_swapped_in_after_the_check_is_not_read(
    swapped: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ReadableFiles([open_folder], read_bytes)
    path = "a.txt" if swapped == "a.txt" else "inner/deep/a.txt"
    resolved = ReadableFiles.resolved

    def swap_after(own: ReadableFiles, *asked: str, **kind: bool) -> Path:
        real = resolved(own, *asked, **kind)
        target = open_folder / swapped
        if not target.is_symlink():
            target.rename(open_folder / "moved")
            secret = "secret.txt" if swapped == "a.txt" else "secrets"
            target.symlink_to(open_folder.parent / secret)
        return real

    monkeypatch.setattr(ReadableFiles, "resolved", swap_after)
    with pytest.raises(ValueError, match="no such file"):
        files.document(path)


@pytest.mark.slow
def test_a_link_swapped_in_while_asked_is_never_read(open_folder: Path) -> None:
    files = ReadableFiles([open_folder], read_bytes)
    over = threading.Event()
    target = open_folder / "a.txt"
    other = open_folder / "inner" / "other"

    def swap() -> None:
        while not over.is_set():
            other.symlink_to(open_folder.parent / "secret.txt")
            other.replace(target)
            other.write_text("It rained.")
            other.replace(target)

    swapping = threading.Thread(target=swap)
    swapping.start()
    texts: set[str] = set()
    for _ in range(5_000):
        try:
            texts.add(files.document("a.txt").text)
        except ValueError:
            continue
    over.set()
    swapping.join()
    assert texts == {"It rained."}
