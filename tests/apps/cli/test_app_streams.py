"""Streams that are closed, a folder that is gone, no home and little memory."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.apps.cli import app as module
from spscanner_rag.apps.cli import main
from tests.command_line import Run

TEXT = "It rained. The keeper left."
SCAN = "spscanner_rag.apps.cli scan {document} -q 'Who left?' --threads 1 --no-cache"


def test_closed_streams_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    module._open_closed_streams()
    assert sys.stdin.read() == ""
    sys.stderr.write("nobody reads this\n")
    sys.stderr.flush()
    sys.stdout.write("nobody would read this\n")
    with pytest.raises(OSError, match="Bad file descriptor"):
        sys.stdout.flush()
    module._discard_output()
    sys.stdout.flush()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


def test_open_streams_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = (sys.stdin, sys.stdout, sys.stderr)
    module._open_closed_streams()
    assert (sys.stdin, sys.stdout, sys.stderr) == streams


def test_a_result_that_nobody_gets_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with os.fdopen(os.open(os.devnull, os.O_RDONLY), "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["--help"]) == 2
    err = capsys.readouterr().err
    assert err == (
        "spscanner: standard output is closed; expected an open one: redirect it to a"
        " file, or give --out\n"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk_behind_standard_output_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["--help"]) == 2
    assert capsys.readouterr().err == (
        "spscanner: standard output cannot be written (No space left on device);"
        " expected more room: redirect it to another file, or give --out\n"
    )


class Interrupting:
    """Finds modules, and is interrupted at the program's own."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "spscanner_rag.apps.cli.app":
            raise KeyboardInterrupt


@pytest.mark.parametrize("is_open", [True, False])
def test_an_interruption_while_modules_are_imported_is_one_line(
    is_open: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "spscanner_rag.apps.cli.app")
    monkeypatch.delattr("spscanner_rag.apps.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    if not is_open:
        monkeypatch.setattr(sys, "stderr", None)
    assert main(["--help"]) == 130
    monkeypatch.undo()
    assert capsys.readouterr().err == "spscanner: interrupted\n" * is_open


def test_a_working_directory_that_was_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    run("scan", tmp_path, "-q", "Who left?").refuses(
        "the working directory was removed"
    )


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("can't start new thread"),
        RuntimeError("could not create a primitive"),
    ],
)
def test_too_little_memory_is_one_line(
    error: Exception, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("spscanner_rag.apps.cli.scan.check_query", fail)
    code, out, err = run("scan", "a.txt", "-q", "Who left?")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("spscanner: the memory is not enough; expected more: raise")


def test_another_runtime_error_keeps_its_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("spscanner_rag.apps.cli.scan.check_query", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        run("scan", "a.txt", "-q", "Who left?")


Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs a scan in a shell, with redirections after it and a command before it."""
    document = tmp_path / "a.txt"
    document.write_text(TEXT)

    def shell(
        after: str = "", before: str = "", **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        scan = SCAN.format(document=document)
        command = f"{before} exec {sys.executable} -m {scan} {after}"
        return subprocess.run(
            ["/bin/sh", "-c", command],
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            timeout=280,
        )

    return shell


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no /bin/sh")
@pytest.mark.parametrize(
    ("after", "code", "message"),
    [
        (">&-", 2, "standard output is closed"),
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
        (">&- 2>&-", 2, ""),
        ("> /dev/full", 2, "standard output cannot be written"),
        ("2> /dev/full", 0, ""),
        ("> /dev/full 2> /dev/full", 2, ""),
        ("--out out.txt >&- 2>&- <&-", 0, ""),
    ],
)
def test_the_program_with_closed_streams(
    shell: Shell, after: str, code: int, message: str, tmp_path: Path
) -> None:
    done = shell(after, f"cd {tmp_path};")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert message in done.stderr
    result = done.stdout
    if "--out" in after:
        result = (tmp_path / "out.txt").read_text()
    if code == 0:
        assert "The keeper left." in result
    assert (tmp_path / "a.txt").read_text() == TEXT


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ulimit -v is Linux's")
@pytest.mark.parametrize("kibibytes", [850_000, 500_000, 200_000])
def test_the_program_with_little_memory(shell: Shell, kibibytes: int) -> None:
    done = shell(before=f"ulimit -v {kibibytes};")
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.startswith("spscanner: ")


ODD_ENVIRONMENTS: list[tuple[str, dict[str, str]]] = [
    ("", {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}),
    ("", {"HOME": "", "SPSCANNER_CACHE": ""}),
    ("", {"XDG_CACHE_HOME": "/dev/null/x"}),
    ("", {"SPSCANNER_CACHE": "/proc/self/x"}),
    ("", {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
    ("", {"OMP_NUM_THREADS": "abc", "COLUMNS": "-5", "TERM": "none"}),
    ("ulimit -n 24;", {}),
    ("ulimit -s 200;", {}),
    ("ulimit -c 0; umask 777;", {}),
    ("exec 3>&- 4>&- 5>&-;", {}),
]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no /bin/sh")
@pytest.mark.parametrize(("before", "environment"), ODD_ENVIRONMENTS)
def test_the_program_in_odd_environments(
    before: str, environment: dict[str, str], shell: Shell
) -> None:
    done = shell(before=before, **environment)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "The keeper left." in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another"
)
def test_the_program_without_a_home(tmp_path: Path) -> None:
    document = tmp_path / "a.html"
    document.write_text(f"<p>{TEXT}</p>")
    tmp_path.chmod(0o755)
    user = "setpriv --reuid 54321 --regid 54321 --clear-groups"
    user += " --inh-caps +dac_read_search --ambient-caps +dac_read_search"
    scan = [sys.executable, "-m", "spscanner_rag.apps.cli", "scan", str(document)]
    done = subprocess.run(
        [*user.split(), *scan, "-q", "Who left?"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "The keeper left." in done.stdout
