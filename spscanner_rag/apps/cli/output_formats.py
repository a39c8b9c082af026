"""The forms that ``scan`` and ``compare`` write, and which one the ending of ``--out`` means."""

from enum import StrEnum
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import is_special


class OutputFormat(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"


ENDINGS = {
    ".txt": OutputFormat.TEXT,
    ".text": OutputFormat.TEXT,
    ".json": OutputFormat.JSON,
    ".html": OutputFormat.HTML,
    ".htm": OutputFormat.HTML,
    ".md": OutputFormat.MARKDOWN,
    ".csv": OutputFormat.CSV,
}
"""The form that an ending means."""


def chosen_format(asked: OutputFormat | None, out: Path | None) -> OutputFormat:
    """The form that was asked for, else that of the ending of ``--out``; text on standard output and for devices.

    Raises ``ValueError`` for an unknown ending, before any work.
    """
    if asked is not None:
        return asked
    if out is None or is_special(out):
        return OutputFormat.TEXT
    known = ENDINGS.get(out.suffix.lower())
    if known is None:
        got = f"the ending {out.suffix}" if out.suffix else "no ending"
        raise ValueError(
            f"--out {out}: got {got}; expected one of .txt, .json, .html, .md, .csv, or --format with it"
        )
    return known
