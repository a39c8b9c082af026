"""Starts `spscanner serve` in a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Served = AbstractContextManager[tuple[subprocess.Popen[str], str]]
Serving = Callable[..., Served]
"""Takes options of the command; gives the process and the server's address."""


@contextmanager
def serving(checkpoint: Path, *options: object, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a checkpoint until the block ends."""
    named = ["serve", "--port", port, "--model", checkpoint, *options]
    command = [sys.executable, "-m", "spscanner_rag.apps.cli", *map(str, named)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            found = None
            while found is None:
                line = server.stderr.readline()
                assert line, "the server ended before it listened"
                found = re.search(r"running on (http://\S+)", line)
            yield server, found.group(1)
        finally:
            server.kill()
