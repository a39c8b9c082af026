"""Options of the results, with reading the documents and writing the outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TextIO

from spscanner_rag.apps.cache import ReadCache
from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.folders import files_named, read_all
from spscanner_rag.files.output import write_output
from spscanner_rag.files.reading import read
from spscanner_rag.system.outputs import check_outputs
from spscanner_rag.system.whole_files import is_special, write_whole


class OutputFormat(StrEnum):
    """The format of the results."""

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
"""The format for each file name ending."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The file and the format of the results.

    ``ValueError`` for an unknown ending.
    """

    output_format: OutputFormat | None = option(
        None, "Default: by the ending of --out, else text.", names=["--format"]
    )
    json: bool = option(
        False, "Same as --format jsonl: one line of JSON per passage, for pipes."
    )
    out: Path | None = option(
        None,
        "File to write instead of standard output; its ending (.txt .json .jsonl .html"
        " .md .csv .pdf) decides the format; a PDF is a copy of the document with its"
        " best sentences highlighted.",
    )
    text_out: Path | None = option(
        None, "File for the text that was read from a single document."
    )

    @cached_property
    def form(self) -> OutputFormat:
        """The requested format, else that of the ending.

        Text for standard output and for devices.
        """
        if self.json or self.output_format is not None:
            return self.output_format or OutputFormat.LINES
        if self.out is None or is_special(self.out):
            return OutputFormat.TEXT
        output_format = ENDINGS.get(self.out.suffix.lower())
        if output_format is not None:
            return output_format
        ending = "no ending"
        if self.out.suffix:
            ending = f"the ending {self.out.suffix}"
        raise ValueError(
            f"--out {self.out}: got {ending}; expected one of {', '.join(ENDINGS)}, or"
            " --format with it"
        )

    def read_documents(
        self,
        paths: Sequence[str],
        cache: ReadCache | None = None,
        progress: bool | None = False,
        other_inputs: Sequence[str] = (),
        ocr: str = "",
    ) -> list[TextFile]:
        """Read files and folders.

        Refuse to overwrite them or ``other_inputs``, such as a checkpoint, and report
        what is left out of a folder. ``ocr`` are languages of scanned pages.
        """
        from spscanner_rag.apps.pages.terminal import page_progress

        check_outputs(self._outputs, files_named(paths), other_inputs)
        read_file = cache.read if cache else read
        with page_progress(progress) as start:
            documents = read_all(
                paths, tell, lambda path: read_file(path, progress=start(path), ocr=ocr)
            )
        if self.text_out and len(documents) > 1:
            raise ValueError(
                f"--text-out: got {len(documents)} documents; expected a single one"
            )
        return documents

    @property
    def _outputs(self) -> dict[str, Path | None]:
        return {"--out": self.out, "--text-out": self.text_out}

    def stream(self, terminal: TextIO) -> TextIO:
        """Return the stream to format text for.

        It is the terminal, or a buffer without colours for ``--out``.
        """
        return StringIO() if self.out else terminal

    def write(self, documents: Sequence[TextFile], content: str | bytes) -> None:
        """Write the result, and the text of the document if requested."""
        # a file may have got another name since the documents were read
        check_outputs(self._outputs, [document.path for document in documents])
        if self.text_out:
            write_whole(self.text_out, documents[0].text)
        write_output(content, self.out, is_page=self.form is OutputFormat.HTML)
