"""Reads files in a separate process, which can be killed and has bounded memory.

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

LEAST_SECONDS = 20.0
SECONDS_PER_MEBIBYTE = 14.0
"""The time limit for reading a file, unless the caller sets another."""

MOST_MEMORY = 2**30
MEMORY_PER_BYTE = 8
"""Memory limit of the process in bytes, where the system supports one; it is higher
for a large file."""

_SECONDS_BETWEEN_CHECKS = 0.05
_SECONDS_AFTER_THE_LIMIT = 2  # in case the parent is killed and cannot end the process
_CHILD = (
    f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {__name__} import"
    " main; main()"
)

Record = Mapping[str, Any]


def seconds_for(data: bytes) -> float:
    """The time limit, in seconds, for reading the content of a file.

    Examples
    --------
    >>> seconds_for(b"a short text")
    20.0
    """
    return max(LEAST_SECONDS, SECONDS_PER_MEBIBYTE * len(data) / 2**20)


def read_apart(
    reader: Callable[..., Iterator[Record]],
    data: bytes,
    seconds: float,
    check: Callable[[], None] | None = None,
    *arguments: object,
) -> Iterator[Record]:
    """Yield the records that a reader makes, until its time or memory runs out.

    Parameters
    ----------
    reader : callable
        A function of a module; it gets ``data`` and ``arguments`` in the process.
    data : bytes
        The content of a file.
    seconds : float
    check : callable, optional
        Called meanwhile. An exception that it raises ends the process and is raised
        here.
    *arguments
        As JSON knows them.
    """
    paths = json.dumps([path for path in sys.path if path])
    reader_name = [str(seconds), reader.__module__, reader.__name__]
    command = [sys.executable, "-I", "-c", _CHILD, paths, *reader_name]
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        watch = _Watch(process, seconds, check)
        watch.start()
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
            watch.end()
    if watch.error is not None:
        raise watch.error


class _Watch(threading.Thread):
    """Kills a process at its time limit, or once a check raises an exception."""

    def __init__(
        self,
        process: "Popen[bytes]",
        seconds: float,
        check: Callable[[], None] | None,
    ) -> None:
        super().__init__(daemon=True)
        self.error: BaseException | None = None
        self._process = process
        self._time_limit = time.monotonic() + seconds
        self._check = check
        self._ended = threading.Event()

    def run(self) -> None:
        """Check until the end, then kill the process."""
        try:
            while not self._ended.wait(_SECONDS_BETWEEN_CHECKS):
                if time.monotonic() >= self._time_limit:
                    break
                if self._check:
                    self._check()
        except BaseException as error:
            self.error = error
        self._process.kill()

    def end(self) -> None:
        """Kill the process, and wait for this thread."""
        self._ended.set()
        self._process.kill()
        self.join()


def main() -> None:
    """Run in the process: read standard input, and write records as lines of JSON."""
    reader = getattr(import_module(sys.argv[3]), sys.argv[4])
    arguments = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    _bound_resources(float(sys.argv[2]), len(data))
    output = sys.stdout
    sys.stdout = sys.stderr
    for record in reader(data, *arguments):
        output.write(json.dumps(record) + "\n")
        output.flush()


def _bound_resources(seconds: float, size: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        memory = max(MOST_MEMORY, MEMORY_PER_BYTE * size)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        cpu_seconds = int(seconds) + _SECONDS_AFTER_THE_LIMIT
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
