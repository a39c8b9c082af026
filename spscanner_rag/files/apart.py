"""Files are read in a process of their own: it can be ended at any moment, and its memory is bounded.

Libraries and expressions that read hostile files cannot be told to stop, and no other thread may run meanwhile.
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
"""The time to read a file, unless a caller says another."""

MOST_MEMORY, MEMORY_PER_BYTE = 2**30, 8
"""Bytes of the process, where the system can bound them; a large file needs more."""

_EVERY = 0.05  # seconds between two looks at the clock
_CHILD = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import main; main()"

Record = Mapping[str, Any]


def seconds_for(data: bytes) -> float:
    """The time that the content of a file may take."""
    return max(LEAST_SECONDS, SECONDS_PER_MEBIBYTE * len(data) / 2**20)


def read_apart(
    reader: Callable[..., Iterator[Record]],
    data: bytes,
    seconds: float,
    check: Callable[[], None] | None = None,
    *arguments: object,
) -> Iterator[Record]:
    """Yield the records that a reader makes of data and arguments, until ``seconds`` or its memory end.

    ``check`` is called meanwhile, and what it raises ends the process and is raised here.
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
            with suppress(OSError):  # it has ended
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
    """In the process: write the records of what is at standard input, a line of JSON each."""
    reader = getattr(import_module(sys.argv[3]), sys.argv[4])
    arguments, data = json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer.read()
    most = max(MOST_MEMORY, MEMORY_PER_BYTE * len(data))
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        seconds = int(float(sys.argv[2])) + 2  # where a parent that was killed cannot end it
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    out, sys.stdout = sys.stdout, sys.stderr
    for record in reader(data, *arguments):
        out.write(json.dumps(record) + "\n")
        out.flush()
