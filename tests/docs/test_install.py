"""Follows the installation instructions of README and docs, word for word.

Each runs in a fresh environment.

The packages of this environment stand in for an index: each fresh one sees them by a
``.pth`` file, and pip asks for nothing else. So it runs everywhere; only mamba-ssm,
which is in no environment of the tests, needs an index.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spscanner_rag.mamba2.backends import INSTALL_TRITON
from tests.docs.blocks import REPOSITORY, blocks_of, check_printed
from tests.docs.test_blocks import NEEDED
from tests.test_package import IMPORT_NAMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PAGE = (REPOSITORY / "README.md").read_text(encoding="utf-8")
README = blocks_of(PAGE, "README.md")
# 0 is correct: pip inverts the last option when it reads it
NO_INDEX = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
UNREACHED = (
    "No matching distribution",
    "Could not find a version",
    "Max retries",
    "NewConnectionError",
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "docs", "tests")
    return shutil.copytree(
        REPOSITORY, tmp_path_factory.mktemp("with") / "clone", ignore=ignored
    )


def shell(command: str, folder: Path, *, index: bool = False) -> str:
    """What a command prints in a folder whose environment is ``folder/.venv``."""
    dropped = ("PYTHON", "PIP_NO", "VIRTUAL")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped)
    }
    path = os.pathsep.join(
        [str(folder / ".venv" / "bin"), str(Path(sys.executable).parent), kept["PATH"]]
    )
    env = {
        **kept,
        "PATH": path,
        "HF_HUB_OFFLINE": "1",
        "PIP_RETRIES": "0",
        **({} if index else NO_INDEX),
    }
    bash = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(
        bash, cwd=folder, env=env, capture_output=True, text=True, timeout=1700
    )
    if done.returncode and index and any(words in done.stderr for words in UNREACHED):
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, (
        f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    )
    return done.stdout


def fresh(folder: Path, command: str = "python3 -m venv .venv") -> None:
    """Make an environment with pip that sees the packages of this one after its own."""
    shell(command, folder)
    seen = [
        path
        for path in sys.path
        if Path(path).name in ("site-packages", "dist-packages")
    ]
    (own,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (own / "seen.pth").write_text("\n".join(seen), encoding="utf-8")


def check_places(folder: Path, *modules: str) -> None:
    """Assert that modules come from the environment of a folder."""
    code = (
        "import importlib; [print(importlib.import_module(each).__file__) for each in"
        f" {modules}]"
    )
    files = shell(f'python -c "{code}"', folder).splitlines()
    assert [Path(file).is_relative_to(folder / ".venv") for file in files] == [
        True
    ] * len(modules), files


def test_the_first_command_in_a_clone(clone: Path) -> None:
    block = next(block for block in README if block.language == "sh")
    make, _, rest = block.text.partition(" && ")
    fresh(clone, make)
    check_printed(block, shell(rest, clone))


def test_the_line_for_ones_own_project_outside_the_clone(
    clone: Path, tmp_path: Path
) -> None:
    (line,) = re.findall(r'`(pip install "PATH/TO/CLONE\[.*?\]")`', PAGE)
    fresh(tmp_path)
    shell(line.replace("PATH/TO/CLONE", str(clone)), tmp_path)
    for module in (*NEEDED["README.md"], "haystack"):
        pytest.importorskip(module)
    check_places(tmp_path, *IMPORT_NAMES)
    (tmp_path / "examples").symlink_to(clone / "examples")
    for block in README:
        if block.language == "python":
            (tmp_path / "block.py").write_text(block.text, encoding="utf-8")
            check_printed(block, shell("python block.py", tmp_path))


def test_the_block_for_gpus(clone: Path, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "performance.md").read_text(encoding="utf-8")
    first, *rest = (
        page.split("### NVIDIA GPUs")[1]
        .split("```sh\n")[1]
        .split("```")[0]
        .strip()
        .splitlines()
    )
    assert all(line in INSTALL_TRITON for line in rest)  # as in the messages
    fresh(tmp_path)
    shell(f"cd {clone} && {first}", tmp_path)
    check_places(tmp_path, "spscanner_rag")
    shell("\n".join(rest), tmp_path, index=True)
    version = "from importlib.metadata import version; print(version('mamba-ssm'))"
    assert shell(f'python -c "{version}"', tmp_path).strip()
