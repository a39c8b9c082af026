"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from spscanner_rag.apps.cli.output_formats import OutputFormat


def optional(meaning: str, metavar: str | None = None, parser: Callable[[str], object] | None = None) -> Any:  # noqa: ANN401 - as typer.Option
    """An option that may be left out; its help names the default."""
    return typer.Option(help=meaning, metavar=metavar, parser=parser, show_default=False)


def optional_number(meaning: str, kind: Callable[[str], float] = int) -> Any:  # noqa: ANN401 - as typer.Option
    """An option for an ``int`` or a ``float`` that may be left out."""

    def parsed(value: str) -> float:
        try:
            return kind(value)
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise typer.BadParameter(f"got {value!r}; expected {expected}") from None

    return optional(meaning, "NUMBER", parsed)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Text, Markdown, HTML, PDF or DOCX files, or folders of them; - is standard input.",
    ),
]
Query = Annotated[str, typer.Option("--query", "-q", help="The question.")]
Out = Annotated[
    Path | None,
    optional(
        "File to write instead of standard output; its ending, .txt .json .html .md .csv, says the form."
    ),
]
Format = Annotated[
    OutputFormat | None,
    typer.Option(
        "--format",
        help="The form of the output; default by the ending of --out, else text.",
        show_default=False,
    ),
]
TextOut = Annotated[
    Path | None,
    optional("File to write the text to that was read from a document; a folder for several documents."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N or mps.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or int8.")]
ScannerDtype = Annotated[str, typer.Option(help="For scanners: auto, float32, bfloat16 or int8.")]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Threads that compute on the CPU; default one for each physical core, or OMP_NUM_THREADS if less.",
        show_default=False,
    ),
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let models from the Hub run their own code.")
]
ShowProgress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Progress on standard error; default if a terminal."),
]


def names_in(option: str, value: str) -> list[str]:
    """The names in a comma-separated option; ``ValueError`` if one is empty or given twice."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ValueError(f"{option}: got {value!r}; expected names separated by commas")
    if len(set(names)) < len(names):
        raise ValueError(f"{option}: got {value!r}, a name twice; expected each once")
    return names
