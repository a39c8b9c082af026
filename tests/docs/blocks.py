"""The code blocks of the documentation: run in order, or checked without running."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spscanner_lab.benchmarks.__main__ import _parser as benchmarks_parser
from spscanner_lab.training.recipe import read_recipe
from spscanner_rag.apps.cli.app import program

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


def run_block(block: Block, folder: Path, names: dict[str, object]) -> str:
    """Run a block in the current folder, ``folder``; return what a shell printed."""
    if block.file:
        (folder / block.file).write_text(block.text, encoding="utf-8")
    if block.language == "python":
        exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), names)
    elif block.language == "sh":
        return run_shell(block, folder)
    elif block.language == "toml":
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
    """Run commands with this environment's program and this repository's code."""
    paths = [
        str(REPOSITORY),
        str(REPOSITORY / "integrations"),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
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


def check_commands(block: Block) -> None:
    """Parse those commands of a shell block that are ours, without running them."""
    for words in commands(block.text):
        if "=" in words[0]:  # a variable of the shell
            continue
        program = Path(words[0]).name
        if program == "spscanner":
            parse_command(words[1:])
        elif words[:3] == ["python", "-m", "spscanner_lab.benchmarks"]:
            benchmarks_parser().parse_args(
                [word for word in words[3:] if word != "--help"]
            )
        elif program == "pytest":
            paths = [word for word in words[1:] if "/" in word]
            assert all((REPOSITORY / path).exists() for path in paths), words
        elif program == "python" and words[1].endswith(".py"):
            assert (REPOSITORY / words[1]).is_file(), words
        elif program == "torchrun":
            module = words.index("-m") + 1
            assert words[module] == "spscanner_rag.apps.cli", f"{block.place}: {words}"
            parse_command(words[module + 1 :])
        elif words[:2] == ["serve", "run"]:  # of Ray Serve
            folder = words[words.index("--app-dir") + 1]
            served = words[-1].partition(":")[0]
            assert (REPOSITORY / folder / f"{served}.py").is_file(), words
        elif program == "curl":
            json.loads(words[words.index("-d") + 1])
        else:
            assert program in ("python3", "pip"), f"{block.place}: {words}"


def commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a shell script without control structures."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
        lexer.commenters, lexer.whitespace_split = "#", True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)


def parse_command(words: list[str]) -> None:
    """Parse the arguments of ``spscanner``; unknown or missing ones are errors."""
    group = program()
    with group.make_context("spscanner", list(words)) as context:
        name, command, rest = group.resolve_command(context, list(words))  # type: ignore[attr-defined]
        command.make_context(name, rest, parent=context)
