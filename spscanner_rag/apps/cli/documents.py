"""The documents that a command reads, and their texts where ``--text-out`` asks for them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.documents import STANDARD_INPUT, TextFile
from spscanner_rag.files.reading import read_all
from spscanner_rag.text.escaping import encodable, one_line


def read_documents(paths: Sequence[str]) -> list[TextFile]:
    """Read files and folders; what is left out of a folder is told on standard error."""
    return read_all(paths, _warn)


def _warn(message: str) -> None:
    line = f"spscanner: {one_line(message)}\n"
    sys.stderr.write(encodable(line, sys.stderr.encoding or "utf-8"))


def check_text_out(text_out: Path | None, documents: Sequence[TextFile]) -> list[Path]:
    """The files to write texts to: the path itself for one document, else files in the folder that it names.

    Raises ``ValueError`` if they cannot be written, or would overwrite a document.
    """
    if text_out is None:
        return []
    single = len(documents) == 1 and not text_out.is_dir()
    if not single and text_out.exists() and not text_out.is_dir():
        raise ValueError(
            f"--text-out {text_out}: got a file for {len(documents)} texts; expected a folder: change the name"
        )
    parent = text_out.parent if single or not text_out.exists() else text_out
    if not parent.is_dir():
        raise ValueError(
            f"--text-out {text_out}: there is no folder {parent}; expected an existing one: create it"
        )
    if not os.access(parent, os.W_OK):
        raise ValueError(
            f"--text-out {text_out}: no permission to write; expected a writable place: choose another"
        )
    targets = [text_out] if single else [text_out / name for name in _names(documents)]
    for target in targets:
        for document in documents:
            if document.path != STANDARD_INPUT and target.exists() and target.samefile(document.path):
                raise ValueError(f"--text-out {target}: got a document to scan; expected another file")
    return targets


def write_texts(documents: Sequence[TextFile], targets: Sequence[Path]) -> None:
    """Write each text to its file; the folder of several is created."""
    for document, target in zip(documents, targets, strict=True) if targets else ():
        target.parent.mkdir(exist_ok=True)
        write_whole(target, document.text)


def _names(documents: Sequence[TextFile]) -> list[str]:
    """A file name for each text: the document's with .txt, and a number where two are alike."""
    taken: set[str] = set()
    names = []
    for document in documents:
        own = "standard-input" if document.path == STANDARD_INPUT else Path(document.path).name
        name, number = f"{own}.txt", 2
        while name.lower() in taken:
            name, number = f"{own}-{number}.txt", number + 1
        taken.add(name.lower())
        names.append(name)
    return names
