"""Example files without the documents that share text with test documents."""

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.lab.synthesis.sources import read_lines, read_sources, source_files
from spscanner_rag.lab.training.data.decontamination import (
    MAX_SHARE,
    MIN_WORDS,
    SharedDocument,
    SharedTextFinder,
)
from spscanner_rag.lab.training.data.documents import QUESTION_SUFFIXES, refuse_other_files


@dataclass(slots=True)
class Decontamination:
    """The test documents compared with, the documents kept and dropped, and the first one dropped."""

    held_out: int
    kept: int = 0
    dropped: int = 0
    first: SharedDocument | None = None


class _NothingKeptError(Exception):
    """No line is left, so that no file should be written."""


def write_decontaminated(
    files: Sequence[Path],
    against: Sequence[Path],
    out: Path,
    *,
    report: Path | None = None,
    min_words: int = MIN_WORDS,
    max_share: float = MAX_SHARE,
) -> Decontamination:
    """Copy the lines of ``.jsonl`` files, perhaps ``.gz``, whose documents share no text with test documents.

    Memory holds hashes of the test documents' sentences and one line at a time. ``against`` are files of the
    same kind, text files, or folders of both. ``out`` is written whole or not at all, and not if no line is
    left; ``report`` gets file, line and `SharedDocument` of each document that was dropped.
    """
    refuse_other_files(files, QUESTION_SUFFIXES)
    finder = SharedTextFinder(read_sources(source_files(against)), min_words=min_words, max_share=max_share)
    if not finder.held_out_documents:
        raise ValueError(
            f"{against[0]}: got no test document; expected at least one: give the files that you test on"
        )
    found = Decontamination(finder.held_out_documents)
    reported = nullcontext(Path(os.devnull)) if report is None else whole_file(report)
    with (
        reported as lines,
        lines.open("w", encoding="ascii") as dropped,
        suppress(_NothingKeptError),
        whole_file(out) as unfinished,
        unfinished.open("wb") as kept,
    ):
        _copy(files, finder, kept, dropped, found)
    return found


def _copy(
    files: Sequence[Path], finder: SharedTextFinder, kept: IO[bytes], dropped: IO[str], found: Decontamination
) -> None:
    for path in files:
        for number, line, document in read_lines(path):
            shared = finder.find(document)
            if shared is None:
                kept.write(line.rstrip(b"\r\n") + b"\n")
                found.kept += 1
                continue
            found.dropped += 1
            found.first = found.first or shared
            dropped.write(json.dumps({"file": str(path), "line": number, **asdict(shared)}) + "\n")
    if not found.kept and not found.dropped:
        raise ValueError(f"{files[0]}: got no document; expected at least one, a JSON object in each line")
    if not found.kept:
        raise _NothingKeptError
