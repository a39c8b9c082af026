"""Entries that programs share: only they are touched, and only what was written."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spscanner_rag.apps.cache import entries as module
from spscanner_rag.apps.cache.entries import EntryFolder, entry_name
from spscanner_rag.system.whole_files import one_at_a_time

NAME = entry_name("text", b"key")
OTHER = entry_name("vectors", b"key")


@pytest.fixture
def folder(tmp_path: Path) -> EntryFolder:
    return EntryFolder(tmp_path / "new" / "cache")


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_put_is_got(folder: EntryFolder) -> None:
    assert folder.get(NAME) is None
    folder.put(NAME, b"content")
    folder.put(OTHER, b"")
    assert folder.get(NAME) == b"content"
    assert folder.get(OTHER) == b""
    folder.put(NAME, b"another")
    assert folder.get(NAME) == b"another"
    assert sorted(os.listdir(folder.path)) == [NAME, OTHER]


def test_an_entry_under_another_name_is_none(folder: EntryFolder) -> None:
    folder.put(NAME, b"content")
    os.rename(folder.path / NAME, folder.path / OTHER)
    assert folder.get(OTHER) is None


def test_every_changed_byte_and_every_cut_is_seen(folder: EntryFolder) -> None:
    folder.put(NAME, b"content")
    entry = folder.path / NAME
    stored = entry.read_bytes()
    for place in range(len(stored)):
        changed = bytearray(stored)
        changed[place] ^= 1
        entry.write_bytes(changed)
        assert folder.get(NAME) is None
        entry.write_bytes(stored[:place])
        assert folder.get(NAME) is None
    entry.write_bytes(stored + b"\0")
    assert folder.get(NAME) is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.parametrize("before", [None, 0o755, 0o777])
def test_only_the_user_reads_it(
    folder: EntryFolder, umask: int, before: int | None
) -> None:
    if before is not None:
        folder.path.mkdir(parents=True)
        folder.path.chmod(before)
    folder.put(NAME, b"content")
    assert (mode(folder.path), mode(folder.path / NAME)) == (0o700, 0o600)


def test_a_folder_with_other_files_keeps_its_mode_and_them(tmp_path: Path) -> None:
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"x" * 5000)
    os.utime(photo, (1, 1))
    (tmp_path / "text-1.entry").write_bytes(b"x" * 5000)
    (tmp_path / f"{NAME}.bak").write_bytes(b"x" * 5000)
    tmp_path.chmod(0o755)
    folder = EntryFolder(tmp_path, 300)
    for number in range(9):
        folder.put(entry_name("text", bytes([number])), b"content")
    assert (tmp_path / "text-1.entry").exists()
    assert (tmp_path / f"{NAME}.bak").exists()
    assert photo.read_bytes() == b"x" * 5000
    assert (mode(tmp_path), mode(next(tmp_path.glob("text-*[0-9a-f].entry")))) == (
        0o755,
        0o600,
    )
    assert len(os.listdir(tmp_path)) < 3 + 9


def test_the_bound_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    names = [entry_name("text", bytes([number])) for number in range(5)]
    one = EntryFolder(tmp_path / "one")
    one.put(names[0], b"content")
    size = (one.path / names[0]).stat().st_size
    folder = EntryFolder(tmp_path / "few", 3 * size + 10)
    for name, age in zip(names, (3, 1, 2), strict=False):
        folder.put(name, b"content")
        os.utime(folder.path / name, (age, age))
    folder.put(names[3], b"content")
    assert [folder.get(name) is not None for name in names] == [1, 0, 1, 1, 0]
    folder.put(names[4], b"x" * 4 * size)  # larger than all of them together
    assert len(os.listdir(folder.path)) == 3


def test_the_number_of_entries_is_bounded(
    folder: EntryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 3)
    for number in range(6):
        folder.put(entry_name("text", bytes([number])), b"")
    assert len(os.listdir(folder.path)) == 3


def test_entries_of_earlier_versions_make_room(folder: EntryFolder) -> None:
    folder.put(NAME, b"")
    old = folder.path / f"text-{'0' * 64}.json.gz"
    old.write_bytes(b"x" * 900)
    os.utime(old, (1, 1))
    EntryFolder(folder.path, 500).put(OTHER, b"")
    assert sorted(os.listdir(folder.path)) == [NAME, OTHER]


def test_leftovers_of_killed_programs_are_removed_and_count(
    folder: EntryFolder,
) -> None:
    folder.put(NAME, b"")
    old, fresh = (folder.path / f".{OTHER}.{digit * 32}.part" for digit in "01")
    old.write_bytes(b"")
    os.utime(old, (1, 1))
    fresh.write_bytes(b"x" * 900)
    EntryFolder(folder.path, 950).put(OTHER, b"")
    assert sorted(os.listdir(folder.path)) == [fresh.name, OTHER]


def test_a_link_is_not_followed(folder: EntryFolder, tmp_path: Path) -> None:
    folder.put(NAME, b"content")
    target = tmp_path / "target"
    os.rename(folder.path / NAME, target)
    before = target.read_bytes()
    (folder.path / NAME).symlink_to(target)
    assert folder.get(NAME) is None
    folder.put(NAME, b"another")
    assert target.read_bytes() == before
    assert not (folder.path / NAME).is_symlink()
    assert folder.get(NAME) == b"another"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_and_a_folder_count_as_missing(folder: EntryFolder) -> None:
    folder.put(OTHER, b"")
    entry = folder.path / NAME
    os.mkfifo(entry)
    assert folder.get(NAME) is None
    folder.put(NAME, b"content")
    assert folder.get(NAME) == b"content"
    entry.unlink()
    entry.mkdir()
    assert folder.get(NAME) is None
    folder.put(NAME, b"content")
    assert sorted(os.listdir(folder.path)) == [NAME, OTHER]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such devices")
def test_an_endless_device_counts_as_missing(folder: EntryFolder) -> None:
    folder.put(OTHER, b"")
    (folder.path / NAME).symlink_to("/dev/zero")
    assert folder.get(NAME) is None


def test_a_huge_file_is_not_read(folder: EntryFolder) -> None:
    folder.put(NAME, b"")
    with (folder.path / NAME).open("wb") as file:
        file.truncate(2**40)
    assert folder.get(NAME) is None


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
def test_another_user_s_file_is_neither_used_nor_removed(folder: EntryFolder) -> None:
    folder.put(NAME, b"content")
    os.chown(folder.path / NAME, 54321, 54321)
    assert folder.get(NAME) is None
    EntryFolder(folder.path, 100).put(OTHER, b"")
    assert (folder.path / NAME).exists()


@pytest.mark.parametrize(
    "path", ["file/cache", "dangling", "/dev/null/x", "x" * 300, "\udcff\0"]
)
def test_where_nothing_can_be_kept(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "absent" / "x")
    folder = EntryFolder(tmp_path / path)
    folder.put(NAME, b"content")
    assert folder.get(NAME) is None
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file"]


def test_a_program_that_holds_the_lock_is_not_waited_for(
    folder: EntryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put(NAME, b"content")
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.02)
    with one_at_a_time(folder.path):
        folder.put(OTHER, b"content")
    assert folder.get(OTHER) is None
    assert os.listdir(folder.path) == [NAME]


def test_threads_share_a_bound(tmp_path: Path) -> None:
    folder = EntryFolder(tmp_path / "cache", 3000)
    names = [entry_name("text", bytes([number])) for number in range(6)]

    def work(first: int) -> None:
        for number in range(20):
            name = names[(first + number) % len(names)]
            folder.put(name, name.encode() * 5)
            assert folder.get(name) in (None, name.encode() * 5)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = list(folder.path.iterdir())
    assert sum(file.stat().st_size for file in files) <= 3000
    assert not [file for file in files if file.name.endswith(".part")]


WORK = """
import sys
from pathlib import Path
from spscanner_rag.apps.cache.entries import EntryFolder, entry_name
folder = EntryFolder(Path(sys.argv[1]), 3000)
for number in range(200):
    name = entry_name("text", bytes([number % 6]))
    folder.put(name, name.encode() * 5)
    assert folder.get(name) in (None, name.encode() * 5)
"""


@pytest.mark.slow
def test_processes_share_a_bound(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORK, str(tmp_path / "cache")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    files = list((tmp_path / "cache").iterdir())
    assert 0 < sum(file.stat().st_size for file in files) <= 3000
    assert not [file for file in files if file.name.endswith(".part")]
