"""Runs pages of the documentation with this interpreter, as before a release.

``PYTHON run_pages.py PAGE...`` runs each page in a process and a folder of its own,
outside the clone, with a copy of ``examples/``. PYTHON is that of an environment into
which the wheel was installed; ``.ci/wheel-pages`` makes one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from blocks import REPOSITORY, run_page  # of this folder, which is the script's

ONE_PAGE = "--one"


def main(arguments: list[str]) -> int:
    """The exit status: 1 if a page fails."""
    if arguments[0] == ONE_PAGE:
        return run_one(Path(arguments[1]))
    pages = [Path(page).resolve() for page in arguments]
    failed = False
    for page in pages:
        failed |= run_apart(page) != 0
    return int(failed)


def run_apart(page: Path) -> int:
    """Run a page in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "examples", Path(folder) / "examples")
        command = [sys.executable, __file__, ONE_PAGE, str(page)]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return subprocess.run(command, cwd=folder, env=clean, check=False).returncode


def run_one(page: Path) -> int:
    """Run a page in the current folder, and print what came of it."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    start = time.monotonic()
    try:
        ran = len(list(run_page(page, Path.cwd())))
    except Exception:
        sys.stdout.write(f"{page}: failed\n{traceback.format_exc()}\n")
        return 1
    noun = "block" if ran == 1 else "blocks"
    seconds = time.monotonic() - start
    sys.stdout.write(f"{page}: {ran} {noun} in {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
