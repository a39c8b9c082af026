"""The lock of a folder: one run at a time, and no trace of a killed one."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spscanner_rag.system.folder_lock import (
    LOCK_FILE,
    FolderInUseError,
    folder_lock,
    refuse_in_use,
)

HOLD = """
import sys, time
from pathlib import Path
from spscanner_rag.system.folder_lock import (folder_lock)
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_folder_is_refused_while_another_process_holds_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with held_by_another(out):
        message = f"{out}: in use by another run; wait until it ends, or give"
        before = (out / LOCK_FILE).stat()
        for _ in range(2):
            with pytest.raises(FolderInUseError, match=message), folder_lock(out):
                pass
            with pytest.raises(FolderInUseError, match=message):
                refuse_in_use(out)
        assert (out / LOCK_FILE).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_process_that_was_killed_is_no_obstacle(
    tmp_path: Path, kill: signal.Signals
) -> None:
    with held_by_another(tmp_path) as process:
        process.send_signal(kill)
        process.wait()
    assert (tmp_path / LOCK_FILE).exists()
    refuse_in_use(tmp_path)
    with folder_lock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_without_results_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), folder_lock(tmp_path / "out"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with folder_lock(tmp_path / "out"):
        (tmp_path / "out" / "results").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results"]
    (tmp_path / "empty").mkdir()
    with folder_lock(tmp_path / "empty"):  # nor twice in the same process
        with pytest.raises(FolderInUseError), folder_lock(tmp_path / "empty"):
            pass
        assert (tmp_path / "empty" / LOCK_FILE).exists()
    assert (tmp_path / "empty").is_dir()


def test_leftovers_are_removed_once_the_lock_is_held(tmp_path: Path) -> None:
    leftover = tmp_path / f".results.csv.{'0' * 32}.part"
    leftover.touch()
    with held_by_another(tmp_path):
        leftover.touch()
        with pytest.raises(FolderInUseError), folder_lock(tmp_path):
            pass
        assert leftover.exists()
    with folder_lock(tmp_path) as removed:
        assert removed == [leftover.name]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = r"file: cannot be written to \(File exists\)"
    with pytest.raises(ValueError, match=message), folder_lock(tmp_path / "file"):
        pass
