"""Reads files in a separate process, which can be killed and has bounded memory.

A library or a regular expression that reads a hostile file cannot be stopped, and may
keep other threads waiting. The process gets no secrets of this one, ends with it, and
is not trusted: what it sends is bounded.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Any

from spscanner_rag.system.parent_death import end_with_parent

LEAST_SECONDS = 20.0
SECONDS_PER_MEBIBYTE = 14.0
"""The time limit for reading a file, unless the caller sets another."""

MOST_MEMORY = 2**30
MEMORY_PER_BYTE = 8
"""Memory limit of the process in bytes, where the system supports one; it is higher
for a large file."""

MOST_RECORDS = 2**17
"""Most records that are taken from the process."""

MOST_OUTPUT = 2**28
OUTPUT_PER_BYTE = 16
"""Most bytes of all records; they are more for a large file."""

MOST_VALUES = 2**22
"""Most lists and objects in all records, besides one for each byte of the file: each
may take thirty times its bytes in memory."""

_INHERITED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "SYSTEMROOT",
    "TZ",
    "TESSDATA_PREFIX",
)
"""Names of the environment that the process gets; others may be secrets."""

_SECONDS_BETWEEN_CHECKS = 0.05
_SECONDS_AFTER_THE_LIMIT = 2  # in case the parent is killed and cannot end the process
# Other imports take a while, in which the parent may end.
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    f" from {end_with_parent.__module__} import end_with_parent;"
    f" end_with_parent(int(sys.argv[4])); from {__name__} import main; main()"
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
    task = _Task(reader, len(data), seconds)
    with _Watch(task, check) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # This stays open: where the system has no other sign of it, the process
        # takes its end for the end of this one.
        with suppress(OSError):  # the process has ended
            process.stdin.write(json.dumps(arguments).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        yield from _records(process.stdout, len(data))


def _records(output: IO[bytes], size: int) -> Iterator[Record]:
    """Yield the records that a process writes, as long as they are within bounds."""
    most_bytes = max(MOST_OUTPUT, OUTPUT_PER_BYTE * size)
    most_values = MOST_VALUES + size
    for _ in range(MOST_RECORDS):
        line = output.readline(most_bytes)
        if not line.endswith(b"\n"):
            return  # the end, half a record, or too many bytes
        most_bytes -= len(line)
        most_values -= line.count(b"[") + line.count(b"{")
        if most_values < 0:
            return
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        yield record


class _Task:
    """What a process does, and the command that starts it."""

    def __init__(
        self, reader: Callable[..., Iterator[Record]], size: int, seconds: float
    ) -> None:
        self.seconds = seconds
        paths = json.dumps([path for path in sys.path if path])
        names = [reader.__module__, reader.__name__]
        numbers = [str(os.getpid()), str(size), str(seconds)]
        self._command = [sys.executable, "-I", "-c", _CHILD, paths, *names, *numbers]

    def start(self) -> "Popen[bytes]":
        """Start the process, with little of this one's environment."""
        # arithmetic in several threads reserves memory for each of them
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        for name in _INHERITED:
            if name in os.environ:
                environment[name] = os.environ[name]
        with _start_lock:
            return Popen(
                self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )


_start_lock: threading.Lock


def _make_lock() -> None:
    """Make a new lock: in a forked child, no thread holds one."""
    global _start_lock
    # Starting a process takes more open files than waiting for it.
    _start_lock = threading.Lock()


_make_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_lock)


class _Watch(threading.Thread):
    """Starts a process, and kills it at its time limit or once a check raises.

    The process ends with the thread that started it, so this thread does. Within the
    ``with`` block the process runs; after it, an exception of the check is raised.
    """

    def __init__(self, task: _Task, check: Callable[[], None] | None) -> None:
        super().__init__(daemon=True)
        self._task = task
        self._check = check
        self._process: Popen[bytes] | None = None
        self._error: BaseException | None = None
        self._ready = threading.Event()
        self._done = threading.Event()

    def __enter__(self) -> "Popen[bytes]":
        """Wait until the process has started, and return it."""
        self.start()
        self._ready.wait()
        if self._process is None:
            assert self._error is not None
            raise self._error
        return self._process

    def __exit__(self, *error: object) -> None:
        """Kill the process, and wait for it and for this thread."""
        self._done.set()
        assert self._process is not None
        self._process.kill()
        self.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not written is not needed
                    stream.close()
        self._process.wait()
        if self._error is not None and error[0] is None:
            raise self._error

    def run(self) -> None:
        """Start the process, check until the end, then kill it."""
        try:
            self._process = self._task.start()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._ready.set()
        limit = time.monotonic() + self._task.seconds
        try:
            while not self._done.wait(_SECONDS_BETWEEN_CHECKS):
                if time.monotonic() >= limit:
                    break
                if self._check:
                    self._check()
        except BaseException as error:
            self._error = error
        self._process.kill()


def main() -> None:
    """Run in the process: read standard input, and write records as lines of JSON."""
    module, function, _, size, seconds = sys.argv[2:]
    _bound_resources(float(seconds), int(size))
    reader = getattr(import_module(module), function)
    arguments = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(int(size))
    if not sys.platform.startswith("linux"):
        threading.Thread(target=_end_with_input, daemon=True).start()
    output = sys.stdout
    sys.stdout = sys.stderr
    for record in reader(data, *arguments):
        output.write(json.dumps(record, separators=(",", ":")) + "\n")
        output.flush()


def _end_with_input() -> None:
    """Wait for the end of standard input, which the parent holds open, and exit."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def _bound_resources(seconds: float, size: int) -> None:
    with suppress(ImportError, ValueError, OSError):
        import resource

        # what is in memory is not written to the disk
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        memory = max(MOST_MEMORY, MEMORY_PER_BYTE * size)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        cpu_seconds = int(seconds) + _SECONDS_AFTER_THE_LIMIT
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
