"""The documents that a command reads, and the files that it writes results and texts to."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TextIO

from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.apps.cli.options import argument, option, tell
from spscanner_rag.checkpoint.whole_file import is_special, write_whole
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import read, read_all
from spscanner_rag.files.writing import check_output, write_output

FILES = argument(
    "Text, Markdown, HTML, PDF or DOCX files, or folders of them; - is standard input.", "FILE..."
)


class OutputFormat(StrEnum):
    """The form in which results are written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    LINES = "jsonl"
    PDF = "pdf"


ENDINGS = {
    ".txt": OutputFormat.TEXT,
    **{f".{form}": form for form in OutputFormat},
    ".htm": OutputFormat.HTML,
    ".md": OutputFormat.MARKDOWN,
}
"""The form that an ending means."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The file and the form of the results; ``ValueError`` for an unknown ending."""

    output_format: OutputFormat | None = option(
        None, "The form of the output; default by the ending of --out, else text.", names=("--format",)
    )
    json: bool = option(False, "As --format jsonl: a line of JSON for each passage, for pipes.")
    out: Path | None = option(
        None,
        "File to write instead of standard output; its ending, .txt .json .jsonl .html .md .csv .pdf, "
        "says the form; a PDF is a copy of the document with its best sentences highlighted.",
    )
    text_out: Path | None = option(None, "File to write the text to that was read of a single document.")

    @cached_property
    def form(self) -> OutputFormat:
        """The form that was asked for, else that of the ending; text on standard output and for devices."""
        if self.json or self.output_format is not None:
            return self.output_format or OutputFormat.LINES
        if self.out is None or is_special(self.out):
            return OutputFormat.TEXT
        known = ENDINGS.get(self.out.suffix.lower())
        if known is None:
            got = f"the ending {self.out.suffix}" if self.out.suffix else "no ending"
            raise ValueError(
                f"--out {self.out}: got {got}; expected one of {', '.join(ENDINGS)}, or --format with it"
            )
        return known

    def read(
        self, paths: Sequence[str], cache: ReadCache | None = None, progress: bool = False
    ) -> list[TextFile]:
        """Read files and folders whose place the output does not take; say what is left out of a folder."""
        from spscanner_rag.apps.pages.terminal import page_progress

        check_output(self.out, paths)
        check_output(self.text_out, paths, "--text-out")
        reader = cache.read if cache else read
        with page_progress(progress) as start:
            documents = read_all(paths, tell, lambda path: reader(path, progress=start(path)))
        if self.text_out and len(documents) > 1:
            raise ValueError(f"--text-out: got {len(documents)} documents; expected a single one")
        check_output(self.out, [document.path for document in documents])
        return documents

    def stream(self, terminal: TextIO) -> TextIO:
        """Return the stream to lay text out for: the terminal, or a file without colours."""
        return StringIO() if self.out else terminal

    def write(self, documents: Sequence[TextFile], content: str | bytes) -> None:
        """Write the text of the document, if asked for, and the result."""
        if self.text_out:
            write_whole(self.text_out, documents[0].text)
        write_output(content, self.out, is_page=self.form is OutputFormat.HTML)
