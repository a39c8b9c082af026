"""Large files are read in a separate process, with the same result."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spscanner_rag.files import apart, reading
from spscanner_rag.files.apart import read_apart
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


def env_of_process(data: bytes) -> Iterator[dict[str, object]]:
    """A reader that tells what the process knows and may do."""
    import resource

    yield {
        "environment": dict(os.environ),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "arguments": sys.argv,
    }


def flood(data: bytes, line: str, times: int) -> Iterator[dict[str, object]]:
    """A reader that sends what no reader sends."""
    output = os.fdopen(1, "w", closefd=False)
    for _ in range(times):
        output.write(line)
    output.flush()
    yield {"text": "after it"}


def sleeping(data: bytes) -> Iterator[dict[str, object]]:
    """A reader that says which process it is, and does not end."""
    yield {"process": os.getpid()}
    time.sleep(100)


def test_the_process_knows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("SPSCANNER_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN")
    for name in (*secrets, "HOME", "PYTHONPATH", "LD_PRELOAD"):
        monkeypatch.setenv(name, "/secret")
    (record,) = read_apart(env_of_process, b"content-of-it", 100.0)
    assert "/secret" not in str(record)
    assert "content-of-it" not in str(record["arguments"])
    assert record["core"] == [0, 0]


@pytest.mark.parametrize(
    ("line", "times", "taken"),
    [
        ("{}\n", 4, 5),
        ("{}\n", 50, 9),
        ('{"a": "' + "x" * 900 + '"}\n', 50, 9),
        ("x" * 90_000, 1, 0),
        ('{"a": [' + "[]," * 500 + "[]]}\n", 9, 1),
        ("[" * 20_000 + "]" * 20_000 + "\n", 1, 0),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}\n", 1, 2),
        ("[1]\n", 1, 0),
        ("not JSON\n", 1, 0),
        ("\udcff\n".encode("utf-8", "surrogatepass").decode("latin-1"), 1, 0),
        ("9" * 5000 + "\n", 1, 0),
        ("null\n", 1, 0),
    ],
    ids=str,
)
def test_what_the_process_sends_is_bounded(
    line: str, times: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "MOST_RECORDS", 9)
    monkeypatch.setattr(apart, "MOST_OUTPUT", 50_000)
    monkeypatch.setattr(apart, "MOST_VALUES", 910)
    records = list(read_apart(flood, b"", 100.0, None, line, times))
    assert len(records) == taken


ORPHAN = """
import sys
from spscanner_rag.files.apart import read_apart
from tests.files.test_apart import sleeping
for record in read_apart(sleeping, b"", 100.0):
    print(record["process"], flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as Linux does it")
@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.slow
def test_the_process_ends_with_a_killed_parent(is_stopped: bool) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE)
    with parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        if is_stopped:
            os.kill(process, signal.SIGSTOP)
        parent.kill()
    limit = time.monotonic() + 60
    while is_running(process):
        assert time.monotonic() < limit
        time.sleep(0.02)


WHEN_IMPORTED = """
import ctypes
signal = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(signal), 0, 0, 0)  # PR_GET_PDEATHSIG
print(signal.value)
def main(): pass
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as Linux does it")
def test_the_process_is_bound_to_its_parent_before_it_imports_more(
    tmp_path: Path,
) -> None:
    package = tmp_path / "spscanner_rag"
    (package / "files").mkdir(parents=True)
    own = str(Path(str(apart.__file__)).parent.parent)
    (package / "__init__.py").write_text(f"__path__.append({own!r})")
    (package / "files" / "__init__.py").touch()
    (package / "files" / "apart.py").write_text(WHEN_IMPORTED)
    paths = json.dumps([str(tmp_path), *filter(None, sys.path)])
    numbers = ["module", "function", str(os.getpid()), "0", "1"]
    command = [sys.executable, "-I", "-c", apart._CHILD, paths, *numbers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.stdout, done.stderr) == (f"{signal.SIGKILL:d}\n", "")


def is_running(process: int) -> bool:
    """Whether a process exists and is no zombie, which only waits to be counted."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_a_generator_may_go_on_in_another_thread() -> None:
    records = read_apart(flood, b"", 100.0, None, "{}\n", 2)
    found: list[object] = []
    first = threading.Thread(target=lambda: found.append(next(records)))
    first.start()
    first.join()
    found += records
    assert len(found) == 3


def test_many_are_read_at_once_with_few_open_files() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = max(map(int, os.listdir("/proc/self/fd"))) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files + 24, before[1]))
    try:
        with ThreadPoolExecutor(6) as pool:
            futures = [pool.submit(list, read_apart(flood, b"", 100.0, None, "", 0))]
            futures += [
                pool.submit(lambda: list(read_apart(flood, b"", 100.0, None, "", 0)))
                for _ in range(5)
            ]
            assert [len(future.result()) for future in futures] == [1] * 6
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
