"""The file of prompts and replies, above all after a kill."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.llm.replies import ReplyFile, ReplyFileError, digest_of

PROMPT = "Wer? \ud800 🚢\u2028\n"


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "replies.jsonl"
    with ReplyFile(path) as replies:
        replies.add("m", PROMPT, reply="the keeper", attempts=2, seconds=0.25)
        replies.add("m", "other", error="TimeoutError: slow", attempts=3)
        assert len(replies) == 1
        assert records(path) == [  # at once, not when it is closed
            {
                "digest": digest_of("m", PROMPT),
                "model": "m",
                "prompt": PROMPT,
                "reply": "the keeper",
                "attempts": 2,
                "seconds": 0.25,
            },
            {
                "digest": digest_of("m", "other"),
                "model": "m",
                "prompt": "other",
                "error": "TimeoutError: slow",
                "attempts": 3,
                "seconds": 0.0,
            },
        ]


def test_replies_are_found_again_and_failures_are_not(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path) as replies:
        replies.add("m", PROMPT, reply="the keeper")
        replies.add("m", "other", error="TimeoutError: slow")
    with ReplyFile(path) as replies:
        assert replies.get(digest_of("m", PROMPT)) == "the keeper"
        assert replies.get(digest_of("n", PROMPT)) is None
        assert replies.get(digest_of("m", "other")) is None
        replies.add("m", "other", reply="late")
    with ReplyFile(path) as replies:
        assert replies.get(digest_of("m", "other")) == "late"
        assert len(replies) == 2


def test_model_and_prompt_do_not_run_together() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")


@given(cut=st.integers(1, 200))
def test_a_half_written_line_is_dropped(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "replies.jsonl"
    with ReplyFile(path) as replies:
        replies.add("m", "first", reply="one")
        whole = path.stat().st_size
        replies.add("m", "second", reply="two")
    size = path.stat().st_size
    os.truncate(path, max(whole, size - cut))
    with ReplyFile(path) as replies:
        assert replies.get(digest_of("m", "first")) == "one"
        assert replies.get(digest_of("m", "second")) is None
        replies.add("m", "second", reply="two again")
    assert path.read_bytes().count(b"\n") == 2
    with ReplyFile(path) as replies:
        assert replies.get(digest_of("m", "second")) == "two again"


def test_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    code = f"""
from spscanner_rag.lab.llm.replies import ReplyFile
from pathlib import Path
replies = ReplyFile(Path({str(path)!r}))
print("ready", flush=True)
for number in range(10**9):
    replies.add("m", str(number) + "x" * 100_000, reply="r" * 1000)
    if number == 20:
        print("written", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"ready\n", b"written\n"]
        process.kill()
    with ReplyFile(path) as replies:
        assert len(replies) >= 21
        assert all(replies.get(digest_of("m", f"{n}" + "x" * 100_000)) for n in range(len(replies)))
        assert path.read_bytes().count(b"\n") == len(replies)


@pytest.mark.parametrize(
    "line",
    [
        b"{broken\n",
        b"\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"null\n",
        b"[" * 100_000 + b"\n",
        b'{"model": "m", "prompt": "p"}\n',
        b'{"digest": "0", "model": "m", "prompt": "p", "reply": "r"}\n',
        json.dumps({"digest": digest_of("m", "p"), "model": "m", "prompt": "p", "reply": 3}).encode() + b"\n",
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path) as replies:
        replies.add("m", "first", reply="one")
    before = path.read_bytes() + line + path.read_bytes()
    path.write_bytes(before)
    with pytest.raises(ReplyFileError, match=r"replies\.jsonl, line 2: expected a prompt and its reply"):
        ReplyFile(path)
    assert path.read_bytes() == before
    path.write_bytes(before.replace(line, b"", 1))
    ReplyFile(path).close()  # the advice of the message helps, and nothing is left locked


@pytest.mark.skipif(sys.platform == "win32", reason="no advisory locks")
def test_one_run_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path), pytest.raises(ReplyFileError, match="in use by another run"):
        ReplyFile(path)
    ReplyFile(path).close()


@pytest.mark.skipif(not hasattr(os, "pread"), reason="no resource limits")
def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    code = f"""
import resource, signal
from spscanner_rag.lab.llm.replies import ReplyFile
from pathlib import Path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
replies = ReplyFile(Path({str(path)!r}))
replies.add("m", "first", reply="one")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    replies.add("m", "second" * 1000, reply="two")
except OSError:
    print("full", flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
replies.add("m", "third", reply="three")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("full\n", "")
    assert [record["reply"] for record in records(path)] == ["one", "three"]


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    with ReplyFile(path) as replies:

        def write(thread: int) -> None:
            for number in range(50):
                replies.add("m", f"{thread} {number} " + "x" * 20_000, reply="r")

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with ReplyFile(path) as replies:
        assert len(replies) == 200
