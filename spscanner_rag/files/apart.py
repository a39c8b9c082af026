"""Reads files in a separate process, which can be killed at any moment and whose memory is bounded.

A library or a regular expression that reads a hostile file cannot be stopped, and may
keep other threads waiting.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

LEAST_SECONDS, SECONDS_PER_MEBIBYTE = 20.0, 14.0
"""The time limit for reading a file, unless the caller sets another."""

MOST_MEMORY, MEMORY_PER_BYTE = 2**30, 8
"""Memory limit of the process in bytes, where the system supports one; it is higher
for a large file."""

_EVERY = 0.05  # seconds between two checks of the time
_CHILD = (
    f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import"
    " main; main()"
)

Record = Mapping[str, Any]


def seconds_for(data: bytes) -> float:
    """The time limit, in seconds, for reading the content of a file."""
    return max(LEAST_SECONDS, SECONDS_PER_MEBIBYTE * len(data) / 2**20)


def read_apart(
    reader: Callable[..., Iterator[Record]],
    data: bytes,
    seconds: float,
    check: Callable[[], None] | None = None,
    *arguments: object,
) -> Iterator[Record]:
    """Yield the records that a reader makes from data and arguments, until its ``seconds`` or memory run out.

    ``check`` is called meanwhile; an exception that it raises ends the process and is
    raised here.
    """
    paths = json.dumps([path for path in sys.path if path])
    named = [str(seconds), reader.__module__, reader.__name__]
    command = [sys.executable, "-I", "-c", _CHILD, paths, *named]
    stop, ended = time.monotonic() + seconds, threading.Event()
    raised: list[BaseException] = []
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:

        def watch() -> None:
            try:
                while not ended.wait(_EVERY) and time.monotonic() < stop:
                    if check:
                        check()
            except BaseException as error:
                raised.append(error)
            process.kill()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(OSError):  # the process has ended
                process.stdin.write(json.dumps(arguments).encode() + b"\n")
                process.stdin.write(data)
                process.stdin.close()
            for line in process.stdout:
                if line.endswith(b"\n"):
                    yield json.loads(line)
        finally:
            ended.set()
            process.kill()
            watcher.join()
    if raised:
        raise raised[0]


def main() -> None:
    """Run in the process: read standard input, and write each record as a line of JSON."""
    reader = getattr(import_module(sys.argv[3]), sys.argv[4])
    arguments, data = json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer.read()
    most = max(MOST_MEMORY, MEMORY_PER_BYTE * len(data))
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        seconds = (
            int(float(sys.argv[2])) + 2
        )  # in case the parent is killed and cannot end it
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    out, sys.stdout = sys.stdout, sys.stderr
    for record in reader(data, *arguments):
        out.write(json.dumps(record) + "\n")
        out.flush()
