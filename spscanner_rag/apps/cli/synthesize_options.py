"""Options and messages that the commands of ``spscanner synthesize`` share."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spscanner_rag.apps.cli.arguments import optional, optional_number
from spscanner_rag.text.escaping import one_line

NOTHING_USABLE, ENDED_EARLY = 1, 3
"""Exit codes of runs without a result, and of runs that ended before all was asked."""

Prompts = Annotated[
    Path | None,
    optional("Folder of prompts; they replace those of the package that have the same names.", "DIR"),
]
ReplyForm = Annotated[
    str,
    typer.Option(
        help="Form of replies: json; keywords, lines that begin with one; auto, json where the model's framework "
        "can hold it to a schema."
    ),
]
MaxRequests = Annotated[
    int | None, optional_number("Most requests, those of earlier runs in the folder included.")
]
MaxCost = Annotated[
    float | None, optional_number("Most that all of these may cost, in the currency of the prices.", float)
]
MinWords = Annotated[
    int, typer.Option(min=1, help="Sentences with fewer words do not count as shared; 1 counts all.")
]
MaxShare = Annotated[
    float,
    typer.Option(
        min=0,
        help="Share of a document's sentences that may be shared, below 1; a document with more is dropped.",
    ),
]
PricePrompt = Annotated[
    float, typer.Option(min=0, help="Price of a million prompt tokens, in your currency.")
]
PriceReply = Annotated[float, typer.Option(min=0, help="Price of a million reply tokens.")]


def tell(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"spscanner: {one_line(message)}\n")
