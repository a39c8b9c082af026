"""``spscanner synthesize``: makes training and test data from documents with a language model."""

import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import typer
import typer.core

from spscanner_rag.apps.cli.options import SeveralValues, argument, option
from spscanner_rag.apps.cli.synthesize_make import RESULTS, make
from spscanner_rag.text.escaping import one_line


class _Group(typer.core.TyperGroup):
    """A group whose first command, ``make``, is meant where no other is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's, or typer's own
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["make", *args]
        return list(super().parse_args(ctx, args))


synthesize = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make training and test data from documents with a language model. `spscanner synthesize FILE... --out "
    "DIR` is short for `spscanner synthesize make FILE... --out DIR`.",
)
synthesize.command(cls=SeveralValues, epilog=RESULTS, short_help="Make examples from documents.")(make)


@synthesize.command("from-released", short_help="Convert the authors' files.")
def from_released(
    files: list[Path] = argument("Released files: training files, .jsonl, or test files, .json.", "FILE..."),
    out: Path = option(..., "Question file to write, .jsonl."),
    tokenizer: Path | None = option(
        None, "tokenizer.json of EleutherAI/gpt-neox-20b, whose tokens the training files hold."
    ),
) -> None:
    """Convert the files that the paper's authors released, for people who have them."""
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
    from spscanner_rag.checkpoint.unfinished import whole_file
    from spscanner_rag.lab.synthesis.released import read_released, read_released_tests

    training = [path for path in files if path.suffix != ".json"]
    if training and tokenizer is None:
        raise ValueError(f"got {training[0]}, a training file, without --tokenizer; expected both")
    tokens = [] if tokenizer is None else [read_released(training, read_tokenizer(tokenizer))]
    lines = chain(*tokens, *(read_released_tests(path) for path in files if path.suffix == ".json"))
    with whole_file(out) as unfinished, unfinished.open("w", encoding="ascii") as target:
        count = 0
        for line in lines:
            target.write(json.dumps(line) + "\n")
            count += 1
        if not count:
            raise ValueError(f"{files[0]}: no record; expected released data")
    sys.stdout.write(f"{count:,} questions in {one_line(str(out))}\n")
