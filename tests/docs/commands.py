"""Checks of the documentation's commands that do not run them."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from spscanner_lab.benchmarks.__main__ import _parser as benchmarks_parser
from spscanner_rag.apps.cli.app import program
from tests.docs.blocks import REPOSITORY, Block


def check_commands(block: Block) -> None:
    """Parse those commands of a shell block that are ours, without running them."""
    for words in commands(block.text):
        if "=" in words[0] or words[0] == ".":  # a variable, or an environment
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
