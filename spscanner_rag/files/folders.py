"""Reads several files, and folders of files."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.files.documents import STANDARD_INPUT, TextFile, name_of
from spscanner_rag.files.formats import ENDINGS
from spscanner_rag.files.reading import read

_ENDINGS_SHOWN = 5


class FilesBelow(NamedTuple):
    """The files below a folder, without hidden ones, in order of name."""

    with_endings: list[str]
    others: list[str]
    notes: list[str]  # lines for the user
    linked_folders: list[str]  # links to folders, which are not followed


def files_named(paths: Sequence[str]) -> list[str]:
    """Return the files among paths, and those that `read_all` reads in folders.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "treaty.txt").write_text("Anne signed the treaty.")
    >>> [Path(path).name for path in files_named([folder, "notes.md"])]
    ['treaty.txt', 'notes.md']
    """
    files: list[str] = []
    for path in paths:
        if path != STANDARD_INPUT and os.path.isdir(path):
            files += regular_files(path, ENDINGS).with_endings
        else:
            files.append(path)
    return files


def read_all(
    paths: Sequence[str],
    warn: Callable[[str], None],
    read: Callable[[str], TextFile] = read,
) -> list[TextFile]:
    """Read files, and the files in folders.

    Of a folder, all files with a known ending that are not hidden are read, in order of
    name.

    Parameters
    ----------
    paths : sequence of str
    warn : callable
        Gets a line about each file in a folder, or part of a file, that could not be
        read.
    read : callable
        Reads one file; another function may have a cache.

    Raises
    ------
    ImportError, ValueError
        As `spscanner_rag.files.read` for a file that was named; for a folder in which
        nothing can be read.
    """
    if list(paths).count(STANDARD_INPUT) > 1:
        raise ValueError(
            "-: got standard input more than once; expected it once: give a single -"
        )
    documents: list[TextFile] = []
    for path in paths:
        if path != STANDARD_INPUT and os.path.isdir(path):
            documents += _read_folder(path, warn, read)
        else:
            documents.append(read(path))
    for document in documents:
        for note in document.notes:
            warn(f"{name_of(document.path)}: {note}")
    return documents


def _read_folder(
    folder: str, warn: Callable[[str], None], read: Callable[[str], TextFile]
) -> list[TextFile]:
    files = regular_files(folder, ENDINGS)
    documents: list[TextFile] = []
    errors: list[str] = []
    for path in files.with_endings:
        try:
            documents.append(read(path))
        except (ValueError, ImportError) as error:
            errors.append(str(error))
    if not documents:
        reason = f"no file in it ends in {', '.join(ENDINGS)}"
        if errors:
            reason = errors[0]
        elif files.linked_folders:
            reason += f"; {_not_followed(files.linked_folders)}"
        if len(errors) > 1:
            reason += f" (and {len(errors) - 1} more)"
        raise ValueError(
            f"{folder}: got a folder in which nothing can be read: {reason}"
        )
    for note in files.notes:
        warn(note)
    for error_message in errors:
        warn(f"left out: {error_message}")
    if files.others:
        warn(
            f"{folder}: left out {len(files.others):,} files with other endings"
            f" ({_endings_of(files.others)})"
        )
    return documents


def _endings_of(paths: Sequence[str]) -> str:
    endings = sorted({Path(path).suffix or "none" for path in paths})
    shown = ", ".join(endings[:_ENDINGS_SHOWN])
    return f"{shown}, ..." if len(endings) > _ENDINGS_SHOWN else shown


def regular_files(folder: str, endings: tuple[str, ...]) -> FilesBelow:
    """List the files below a folder.

    The notes name pipes, devices and the like with one of the endings, which are left
    out because they are not regular files, links to folders, which are not followed,
    and links to files that lead out of the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "treaty.txt").write_text("Anne signed the treaty.")
    >>> [Path(path).name for path in regular_files(folder, (".txt",)).with_endings]
    ['treaty.txt']
    """
    files = FilesBelow([], [], [], [])
    irregular: list[str] = []
    for path in _visible_paths(folder):
        if os.path.isdir(path):
            files.linked_folders.append(path)
        elif not path.lower().endswith(endings):
            files.others.append(path)
        elif os.path.isfile(path):
            files.with_endings.append(path)
        else:
            irregular.append(path)
    if irregular:
        files.notes.append(
            f"left out: {len(irregular):,} that are not regular files, such as"
            f" {irregular[0]}"
        )
    if files.linked_folders:
        files.notes.append(f"{folder}: {_not_followed(files.linked_folders)}")
    root = os.path.join(os.path.realpath(folder), "")
    links: list[str] = []
    for path in files.with_endings:
        if not os.path.realpath(path).startswith(root):
            links.append(path)
    if links:
        files.notes.append(
            f"{folder}: {len(links):,} links lead out of it, such as {links[0]}"
        )
    return files


def _not_followed(links: Sequence[str]) -> str:
    """Say which linked folders are left out, and how to read them."""
    shown = ", ".join(links[:_ENDINGS_SHOWN])
    if len(links) > _ENDINGS_SHOWN:
        shown += ", ..."
    return (
        f"left out {len(links):,} linked folders, since links to folders are not"
        f" followed: {shown}; name a linked folder itself to read it"
    )


def _visible_paths(folder: str) -> list[str]:
    """Return the paths below a folder, without those that are or lie hidden.

    They are those of files, and of links to folders.
    """
    paths: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        linked = [
            name for name in folders if os.path.islink(os.path.join(parent, name))
        ]
        for name in sorted([*names, *linked]):
            if not name.startswith("."):
                paths.append(os.path.join(parent, name))
    return paths
