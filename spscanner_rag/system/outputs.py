"""Decides whether outputs may be written: no output replaces a file that is read.

Files are compared by device and inode, with links followed, so that another name of the
same file is recognized.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from spscanner_rag.system.whole_files import is_special

_STANDARD_INPUT = "-"
_UNFINISHED = ".part"  # ends the name of a file that `whole_file` has not completed
_IGNORES_CASE = sys.platform in ("darwin", "win32")


class _FileIdentity(NamedTuple):
    """What all names of a file have in common."""

    device: int
    inode: int


def check_outputs(
    outputs: Mapping[str, Path | None],
    documents: Iterable[str | Path],
    other_inputs: Iterable[str | Path] = (),
) -> None:
    """Refuse outputs that cannot be written, or that would replace what is read.

    Call this once all inputs are known, and before any of them is read.

    Parameters
    ----------
    outputs : mapping of str to Path
        The file for each option; None is standard output.
    documents : iterable of str or Path
        The documents to scan, after folders were expanded. ``-`` is standard input.
    other_inputs : iterable of str or Path
        Further files and folders that are read, such as a checkpoint. Of a folder, all
        files count. What does not exist is skipped.

    Raises
    ------
    ValueError
        For a folder, a place that is missing or without permission, a file that is
        read, and a file that two options name.

    Examples
    --------
    >>> import tempfile
    >>> document = Path(tempfile.mkdtemp()) / "treaty.txt"
    >>> _ = document.write_text("Anne signed the treaty.")
    >>> check_outputs({"--out": document.with_suffix(".html")}, [document])
    >>> check_outputs({"--out": document}, [document])
    Traceback (most recent call last):
    ValueError: --out ...: got a document to scan; expected another file: ...
    """
    named = {option: path for option, path in outputs.items() if path is not None}
    for option, path in named.items():
        _check_place(f"{option} {path}", path)
    _refuse_one_file_twice(named)
    inputs_by_kind = {
        "a document to scan": documents,
        "a file that is read": other_inputs if named else (),
    }
    for kind, inputs in inputs_by_kind.items():
        identities = _identities_of(inputs)
        for option, path in named.items():
            if _identity_of(path) in identities:
                raise ValueError(
                    f"{option} {path}: got {kind}; expected another file: change the"
                    " name"
                )


def check_results_folder(
    folder: Path, names: Sequence[str], inputs: Iterable[str | Path]
) -> None:
    """Refuse a folder of results if files that are read would be replaced there.

    Parameters
    ----------
    folder : Path
        Where results are written; it may not exist yet.
    names : sequence of str
        Names of the files that are written there, or patterns such as ``part-*``.
    inputs : iterable of str or Path
        Files and folders that are read.

    Raises
    ------
    ValueError
        Names the file.
    """
    written: dict[_FileIdentity, Path] = {}
    for path in _files_named(folder, names):
        identity = _identity_of(path)
        if identity is not None:
            written[identity] = path
    if not written:
        return
    for identity in _identities_of(inputs):
        if identity in written:
            raise ValueError(
                f"{folder}: got a folder whose {written[identity].name} is read and"
                " would be replaced; expected another folder for the results: change"
                " --out"
            )


def files_of_run(names: Iterable[str]) -> list[str]:
    """Return names of results, with those of their unfinished files.

    Examples
    --------
    >>> files_of_run(["test.jsonl"])
    ['test.jsonl', 'test.jsonl.part']
    """
    all_names: list[str] = []
    for name in names:
        all_names += [name, f"{name}{_UNFINISHED}"]
    return all_names


def _files_named(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield what a folder has under these names or patterns."""
    try:
        names_inside = os.listdir(folder)
    except OSError:  # a new folder; whether it can be made is seen when it is
        return
    for name in names_inside:
        if any(fnmatch(name, pattern) for pattern in names):
            yield folder / name


def _check_place(subject: str, path: Path) -> None:
    """Refuse a folder, and a place where no file can be written."""
    if path.is_dir():
        raise ValueError(f"{subject}: got a folder; expected a file: add a file name")
    target = Path(os.path.realpath(path))
    is_link = path.is_symlink()
    if is_link and target.is_symlink():
        raise ValueError(
            f"{subject}: got links that lead in a circle; expected a file: remove them"
        )
    if not target.parent.is_dir():
        folder = path.parent
        leads = ""
        if is_link:
            folder = target.parent
            leads = f"got a link to {target}, and "
        raise ValueError(
            f"{subject}: {leads}there is no folder {folder}; expected one: create it"
        )
    place = path if is_special(path) else target.parent
    if not os.access(place, os.W_OK):
        raise ValueError(
            f"{subject}: no permission to write; expected a writable place: choose"
            " another"
        )


def _refuse_one_file_twice(named: Mapping[str, Path]) -> None:
    """Refuse a file that two options name, unless it is a device or a pipe."""
    option_by_file: dict[object, str] = {}
    for option, path in named.items():
        if is_special(path):
            continue
        file = _identity_of(path) or _real_name(path)
        if file in option_by_file:
            raise ValueError(
                f"{option} {path}: got the file of {option_by_file[file]}; expected"
                " another: change one of the names"
            )
        option_by_file[file] = option


def _real_name(path: Path) -> str:
    """The name of a file that does not exist yet, with links followed."""
    name = os.path.realpath(path)
    return name.casefold() if _IGNORES_CASE else name


def _identities_of(inputs: Iterable[str | Path]) -> set[_FileIdentity | None]:
    """Return the identities of files, and of all files below folders."""
    identities: set[_FileIdentity | None] = set()
    for path in inputs:
        if str(path) != _STANDARD_INPUT and os.path.isdir(path):
            for parent, _, names in os.walk(path):
                for name in names:
                    identities.add(_identity_of(Path(parent, name)))
        else:
            identities.add(_identity_of(path))
    identities.discard(None)  # devices, and what does not exist
    return identities


def _identity_of(path: str | Path) -> _FileIdentity | None:
    """Return the identity of a regular file, with links followed."""
    try:
        # a number is an open file
        status = os.stat(0 if str(path) == _STANDARD_INPUT else path)
    except (OSError, ValueError):  # ValueError: a zero character in the name
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _FileIdentity(status.st_dev, status.st_ino)
