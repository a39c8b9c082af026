"""``spscanner verify``: check an answer's quotes and claims against files."""

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from spscanner_rag.apps.cli.declaring import argument, grouped, option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.model_options import ScannerOptions
from spscanner_rag.apps.cli.shared_options import FILES, MODEL
from spscanner_rag.apps.verifying import verify as check
from spscanner_rag.apps.verifying.citation_blocks import to_anthropic, to_openai
from spscanner_rag.apps.verifying.report import MEANINGS, Verification
from spscanner_rag.files.folders import files_named
from spscanner_rag.files.output import write_output
from spscanner_rag.files.readers.text_builder import decoded
from spscanner_rag.files.reading import bytes_of
from spscanner_rag.system.outputs import check_outputs
from spscanner_rag.system.strict_json import json_text

if TYPE_CHECKING:
    from spscanner_rag.scanner import Scanner

EXIT_CODES = """The exit code is 0 if every statement is supported, 1 if one is not, 2
for bad input. A file that cannot be read is a note on standard error; nothing is found
in it.
"""


class ReportFormat(StrEnum):
    """The format of the report."""

    TEXT = "text"
    JSON = "json"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"


@grouped
def verify(
    answer: str = argument("The answer, Markdown or plain text; - is standard input."),
    files: list[str] = FILES,
    *,
    claims: bool = option(
        True, "Check claims, not quotes alone.", names=["--claims/--no-claims"]
    ),
    output_format: ReportFormat = option(
        ReportFormat.TEXT,
        "text, json, or the answer with its citations in the form of an API.",
        names=["--format"],
    ),
    out: Path | None = option(None, "File to write instead of standard output."),
    model: str | None = MODEL,
    computes: ScannerOptions,
) -> None:
    """Check whether an answer's quotes and claims stand in files.

    A quote is compared word by word: it is supported, altered, found elsewhere than
    cited, or not found. A claim is supported if a sentence of the files says it.
    """
    paths = files_named(files)
    inputs = [answer, *paths]
    check_outputs({"--out": out}, inputs, computes.model_files(model))
    text = decoded(bytes_of(answer))
    documents = [Path(path) for path in paths]
    scanner: Scanner | None = None
    if claims:
        scanner = computes.scanner(model)
    checked = check(text, documents, claims=claims, scanner=scanner)
    for note in checked.notes:
        tell(note)
    write_output(_rendered(checked, output_format), out, is_page=False)
    if not checked.is_supported:
        raise typer.Exit(1)


def _rendered(checked: Verification, form: ReportFormat) -> str:
    match form:
        case ReportFormat.JSON:
            return json_text(checked.to_dict())
        case ReportFormat.ANTHROPIC:
            return json_text(to_anthropic(checked))
        case ReportFormat.OPENAI:
            return json_text(to_openai(checked))
        case ReportFormat.TEXT:
            lines = [*map(str, checked.statements), _summary(checked)]
            return "\n".join(lines) + "\n"


def _summary(checked: Verification) -> str:
    """How many statements have each status: "4 statements: 3 supported, 1 altered"."""
    counts = Counter(statement.status for statement in checked.statements)
    parts = [f"{counts[status]} {status}" for status in MEANINGS if counts[status]]
    n_statements = len(checked.statements)
    noun = "statement" if n_statements == 1 else "statements"
    return f"{n_statements} {noun}: {', '.join(parts) or 'nothing to check'}"
