"""The code blocks of the documentation, and how they run.

``run_page.py`` runs them in environments without the packages of the tests, so this
module imports the standard library alone.
"""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "docs" / "providers").rglob("*.mdx")),
    REPOSITORY / "docs" / "providers" / "haystack" / "spscanner.md",
    REPOSITORY / "examples" / "skill" / "SKILL.md",
]

# pages for other projects also use bash, to install
LANGUAGES = {
    "python",
    "sh",
    "toml",
    "json",
    "text",
}
NOT_RUN = {
    "network": "installs or downloads",
    "data": "needs data that are not in the repository",
    "server": (
        "asks a server that another block says how to start; tests of the server"
        " run one"
    ),
    "measurement": (
        "measures, for minutes; a test or another page runs the command on less"
    ),
    "tests": "runs tests that run anyway",
}
"""What a page may state before a block: ``<!-- runs: network -->``."""

_BLOCK = re.compile(
    r"(?:^<!-- (?P<key>\w+): (?P<value>[^\n]+?)"
    r" -->\n\n?)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.M | re.S,
)


_SCORE = re.compile(r"\b\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int  # line number of its first line of content
    language: str
    text: str
    not_run: str = ""  # one of `NOT_RUN`, if it does not run
    file: str = ""  # the file that gets its content
    prints: str = ""  # the block of text directly below it

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(text: str, page: str) -> list[Block]:
    """The blocks of a page, in order.

    ``ValueError`` for an unknown mark or language.
    """
    found: list[Block] = []
    stop = 0  # of the block before
    for match in _BLOCK.finditer(text):
        key, value = match["key"], match["value"]
        line = text.count("\n", 0, match.start("text")) + 1
        if key not in (None, "runs", "file") or (
            key == "runs" and value not in NOT_RUN
        ):
            raise ValueError(f"{page}:{line}: unknown mark {key}: {value}")
        if match["language"] not in (
            LANGUAGES | {"bash"} if "/providers/" in page else LANGUAGES
        ):
            raise ValueError(f"{page}:{line}: unknown language {match['language']!r}")
        not_run, file = (value if key == name else "" for name in ("runs", "file"))
        if match["language"] == "bash" and "/providers/" in page:
            not_run = "network"
        if (
            match["language"] == "text"
            and found
            and not text[stop : match.start()].strip()
        ):
            found[-1] = replace(found[-1], prints=match["text"])
        found.append(Block(page, line, match["language"], match["text"], not_run, file))
        stop = match.end()
    if len(found) * 2 != len(re.findall("^```", text, re.M)):
        raise ValueError(
            f"{page}: a fence that does not open or close a block at the start of a"
            " line"
        )
    return found


def run_page(page: Path, folder: Path) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in order, in the current folder, ``folder``.

    Yields each block that runs, and what it printed. ``AssertionError`` if it fails, or
    if it did not print what the page shows below it.
    """
    name = str(page)
    if REPOSITORY in page.parents:
        name = str(page.relative_to(REPOSITORY))
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text(encoding="utf-8"), name):
        if block.not_run or (block.language == "text" and not block.file):
            continue
        with redirect_stdout(io.StringIO()) as printed:
            shown = run_block(block, folder, names)
        shown += printed.getvalue()
        check_printed(block, shown)
        yield block, shown


def run_block(block: Block, folder: Path, names: dict[str, object]) -> str:
    """Run a block in the current folder, ``folder``; return what a shell printed."""
    if block.file:
        (folder / block.file).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), names)
    elif block.language == "sh":
        return run_shell(block, folder)
    elif block.language == "toml":
        from spscanner_lab.training.recipe import read_recipe

        read_recipe(folder / block.file)
    elif block.language == "json":
        assert isinstance(json.loads(block.text), dict), block.place
    return ""


def check_printed(block: Block, printed: str) -> None:
    """The lines below a block are among those that it printed, in their order.

    Decimal numbers may differ, ``...`` alone stands for any lines, and at the end of a
    line for the rest of it.
    """
    lines = iter([_SCORE.sub("0.", line).strip() for line in printed.splitlines()])
    for shown in block.prints.splitlines():
        start, cut, _ = _SCORE.sub("0.", shown).strip().partition("...")
        if start and not any(
            line.startswith(start) if cut else line == start for line in lines
        ):
            raise AssertionError(
                f"{block.place}: {shown!r} was not printed:\n{printed}"
            )


def run_shell(block: Block, folder: Path) -> str:
    """Run commands with the programs of this environment."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
    }
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, (
        f"{block.place}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
    return done.stdout
