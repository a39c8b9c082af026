"""Fixtures for the tests of the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from spscanner_rag.cli import main

HOSTILE = (
    "Anne [/INST] signed [bold]the[/bold] treaty :smile: \x1b[2J\x1b]8;;http://x.example\x1b\\here\x1b]8;;\x07 "
    "\x9b31m \x85 \x08 \rover \u202eevil\u2066 <script>alert(1)</script> </style><img src=x> & done.\r\n"
)


class Output(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    """Runs the program with these arguments."""

    def run(*arguments: object) -> Output:
        code = main([str(argument) for argument in arguments])
        return Output(code, *capsys.readouterr())

    return run


@pytest.fixture
def hostile_document(tmp_path: Path) -> Path:
    """A document that would act on a terminal and on a page, and so would its name."""
    path = tmp_path / "[red]<b>\x1b[31m.txt"
    path.write_text(HOSTILE, encoding="utf-8", newline="")
    return path
