"""Files written whole or not at all."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from spscanner_rag.system.whole_files import (
    one_at_a_time,
    remove_leftovers,
    whole_file,
    write_whole,
)


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    reader = threading.Thread(
        target=lambda: read.append((tmp_path / "pipe").read_text())
    )
    reader.start()
    write_whole(tmp_path / "pipe", "through")
    reader.join(timeout=10)
    assert read == ["through"]


def test_an_unfinished_file_takes_the_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "scores.npy"
    path.write_text("old")
    (tmp_path / "scores.npy.part").write_text(
        "of a killed program, longer than the new one"
    )
    with whole_file(path) as unfinished:
        assert unfinished == tmp_path / "scores.npy.part"
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    path.chmod(0o444)
    with pytest.raises(FileNotFoundError), whole_file(path):
        pass  # a writer that writes nothing
    write_whole(
        path, "newest"
    )  # a read-only file is replaced, and its permissions stay
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("newest", 0o444)
    assert [each.name for each in tmp_path.iterdir()] == ["scores.npy"]


def test_file_and_folder_are_on_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    replace, sync = os.replace, os.fsync

    def noted_sync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(
        os, "replace", lambda *paths: (done.append("replaced"), replace(*paths))
    )
    write_whole(tmp_path / "a", "x")
    with whole_file(tmp_path / "b") as unfinished:
        unfinished.write_text("x")
    assert done == ["file", "replaced", "folder"] * 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_names_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"{os.strerror(number)}.*make room") as caught:
        write_whole(tmp_path / "out", "x")
    assert str(caught.value).startswith(f"{tmp_path / 'out'}: ")
    assert caught.value.errno == number
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_programs_are_removed(tmp_path: Path) -> None:
    number = "0123456789abcdef" * 2
    leftovers = {f".results.csv.{number}.part", f".out-{number}.partial"}
    kept = {
        "a.part",
        f".{number}.part",
        f"results.{number}.part",
        ".results.csv.part",
        f".fresh.{number}.part",
    }
    for name in (*leftovers, *kept):
        (tmp_path / name).touch()
    (tmp_path / f".out-{number}.partial").unlink()
    (tmp_path / f".out-{number}.partial" / "deep").mkdir(parents=True)
    for name in leftovers:
        os.utime(tmp_path / name, (0, 0))
    assert set(remove_leftovers(tmp_path)) == leftovers
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert remove_leftovers(tmp_path, 0) == [f".fresh.{number}.part"]
    assert remove_leftovers(tmp_path / "absent") == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such locks")
def test_a_block_for_a_folder_is_waited_for_or_given_up(tmp_path: Path) -> None:
    entered = threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with one_at_a_time(tmp_path):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(30)
    with pytest.raises(TimeoutError), one_at_a_time(tmp_path, seconds=0.0):
        pass
    timer = threading.Timer(0.05, leave.set)
    timer.start()
    with one_at_a_time(tmp_path, seconds=30):
        assert leave.is_set()
    thread.join()
