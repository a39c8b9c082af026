"""Which files the inputs of a batch name: tables of rows, and documents."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.apps.batch.stores import files_below, is_address
from spscanner_rag.apps.batch.tables import TABLE_ENDINGS
from spscanner_rag.files.folders import regular_files
from spscanner_rag.files.formats import ENDINGS


class InputFiles(NamedTuple):
    """The files that inputs name."""

    tables: list[str]
    documents: list[str]
    notes: list[str]  # lines for the user


def list_inputs(inputs: Sequence[str]) -> InputFiles:
    """List the tables and documents that inputs name.

    In a folder with tables, only they are read, and a note tells of documents beside
    them. Hidden files, and files with a name or a folder that begins with an
    underscore, are left out.

    Raises
    ------
    ValueError
        For a folder in which nothing can be read.
    """
    files = InputFiles([], [], [])
    for path in inputs:
        if is_address(path):
            _add_address(path, files)
        elif Path(path).is_dir():
            _add_folder(path, files)
        else:
            _add_file(path, files)
    return files


def _add_file(path: str, files: InputFiles) -> None:
    if path.lower().endswith(TABLE_ENDINGS):
        files.tables.append(path)
    else:
        files.documents.append(path)


def _add_folder(folder: str, files: InputFiles) -> None:
    for endings, paths in ((TABLE_ENDINGS, files.tables), (ENDINGS, files.documents)):
        inside = regular_files(folder, endings)
        visible = _without_underscores(inside.with_endings, folder)
        if visible:
            paths += visible
            files.notes.extend(inside.notes)
            if paths is files.tables:
                files.notes.extend(_beside_tables(folder, inside.others))
            return
    raise _nothing_in(folder)


def _beside_tables(folder: str, others: Sequence[str]) -> list[str]:
    """A line about the documents in a folder of which only the tables are read."""
    readable = [path for path in others if path.lower().endswith(ENDINGS)]
    documents = _without_underscores(readable, folder)
    if not documents:
        return []
    return [
        f"{folder}: {len(documents):,} documents beside tables of rows are not read"
        f" (first: {documents[0]}); give them as inputs of their own"
    ]


def _add_address(address: str, files: InputFiles) -> None:
    tables = files_below(address, TABLE_ENDINGS)
    if tables is None:
        _add_file(address, files)
        return
    for endings, paths in ((TABLE_ENDINGS, files.tables), (ENDINGS, files.documents)):
        visible = _without_underscores(files_below(address, endings) or [], address)
        if visible:
            paths += visible
            return
    raise _nothing_in(address)


def _without_underscores(paths: Sequence[str], folder: str) -> list[str]:
    separator = "/" if is_address(folder) else os.sep
    visible: list[str] = []
    for path in sorted(paths):
        if f"{separator}_" not in path[len(folder) - 1 :]:
            visible.append(path)
    return visible


def _nothing_in(folder: str) -> ValueError:
    return ValueError(
        f"{folder}: got a folder in which nothing can be read; expected files"
        f" that end in {', '.join((*TABLE_ENDINGS, *ENDINGS))}"
    )
