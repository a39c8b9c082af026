"""The folder that stores a retriever's documents, counts and vectors.

It has documents as JSON lines, counts and vectors as memory-mapped arrays, and a
manifest.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.retrieval.corpus_manifest import (
    DOCUMENTS_FILE,
    MANIFEST_FILE,
    FileEntry,
    damaged,
    is_unfinished,
    manifest_text,
    read_manifest,
    size_and_digest,
)
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.json_values import check_json

_MOST_READS = 100  # attempts to read a folder while other programs write to it
_ANY_PERMISSIONS = -1

Record = Mapping[str, Any]
"""A document as a JSON object."""


def write_corpus(
    path: str | Path, framework: str, documents: Iterable[Record], held_texts: HeldTexts
) -> None:
    """Write documents, counts and vectors to a folder, completely or not at all.

    The files get new names and the permissions of the old ones, and the manifest that
    names them replaces the old one at the end: a killed program leaves the old content.
    Calls for the same folder wait for each other.

    Parameters
    ----------
    path : str or Path
        A folder that is new, empty or was written before.
    framework : str
        The name of the framework, which `read_corpus` compares.
    documents : iterable of mappings
        The documents, as objects of JSON values.
    held_texts : HeldTexts
        Their texts, whose counts and vectors are written.

    Raises
    ------
    ValueError
        For a folder with other files, or a value that JSON cannot keep, before anything
        is written.
    """
    # Its package imports torch.
    from spscanner_rag.system.whole_files import one_at_a_time, write_whole

    folder = Path(path).expanduser()
    lines = _json_lines(documents)
    contents: dict[str, list[bytes] | NDArray[Any]] = {DOCUMENTS_FILE: lines}
    contents |= held_texts.to_arrays()
    _check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        older_files = list(filter(is_unfinished, folder.iterdir()))
        permissions = _common_permissions([*older_files, folder / MANIFEST_FILE])
        files = _write_files(folder, contents, permissions)
        manifest = manifest_text(framework, len(lines), files)
        write_whole(folder / MANIFEST_FILE, manifest)
        _remove(older_files)


def check_corpus(path: str | Path, documents: Iterable[Record]) -> None:
    """Raise the errors of `write_corpus` that are found before anything is written."""
    _json_lines(documents)
    _check_free(Path(path).expanduser())


def _json_lines(documents: Iterable[Record]) -> list[bytes]:
    lines = []
    for number, document in enumerate(documents, start=1):
        owner = f"document {document.get('id') or number!r}"
        for key, value in document.items():
            check_json(value, key, owner)
        lines.append(json.dumps(dict(document)).encode("ascii") + b"\n")
    return lines


def _check_free(folder: Path) -> None:
    """Raise ``ValueError`` unless a corpus may be written to the folder."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(
            f"{folder}: got a file; expected a folder to persist to: choose another"
            " path"
        )
    file_paths = list(folder.iterdir())
    if any(file_path.name == MANIFEST_FILE for file_path in file_paths):
        read_manifest(folder, None)
        return
    foreign = sorted(
        file_path.name for file_path in file_paths if not is_unfinished(file_path)
    )
    if foreign:
        raise ValueError(
            f"{folder}: got a folder with other files, such as {foreign[0]!r}; expected"
            " a new or empty folder, or one that was persisted to before: choose"
            " another path"
        )


def _common_permissions(file_paths: Iterable[Path]) -> int:
    """The permissions that all of these files have."""
    permissions = _ANY_PERMISSIONS
    for file_path in file_paths:
        if file_path.is_file():
            permissions &= file_path.stat().st_mode
    return permissions


def _write_files(
    folder: Path,
    contents: Mapping[str, list[bytes] | NDArray[Any]],
    permissions: int,
) -> dict[str, FileEntry]:
    """Write all files under new names, or none if one fails."""
    prefix = uuid4().hex[:12]
    files: dict[str, FileEntry] = {}
    try:
        for name, content in contents.items():
            ending = name if name == DOCUMENTS_FILE else f"{name}.npy"
            file_path = folder / f"{prefix}.{ending}"
            files[name] = {"file": file_path.name}
            files[name] |= _write_file(file_path, content, permissions)
    except BaseException:
        _remove(folder.glob(f"{prefix}.*"))
        raise
    return files


def _write_file(
    file_path: Path, content: list[bytes] | NDArray[Any], permissions: int
) -> FileEntry:
    """Write a new file, and return its size and digest."""
    from spscanner_rag.system.whole_files import telling_of_full_disks

    with telling_of_full_disks(file_path), file_path.open("x+b") as file:
        if permissions != _ANY_PERMISSIONS:
            file_path.chmod(permissions & 0o777)
        if isinstance(content, list):
            file.writelines(content)
        else:
            np.save(file, content, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
        return size_and_digest(file)


def _remove(file_paths: Iterable[Path]) -> None:
    for file_path in file_paths:
        # Another program may have it open, and then the next call removes it.
        with suppress(OSError):
            file_path.unlink()


def read_corpus(
    path: str | Path, framework: str
) -> tuple[list[dict[str, Any]], HeldTexts]:
    """Read what `write_corpus` wrote for a framework: documents, counts and vectors.

    Every file is compared with its digest. The arrays stay on disk until they are used.
    While another call writes, the old or the new content is read.

    Returns
    -------
    documents : list of dict
        The documents.
    held_texts : HeldTexts
        The counts and vectors, without texts.

    Raises
    ------
    ValueError
        Names the file that is missing, damaged or of another kind.
    """
    folder = Path(path).expanduser()
    files = read_manifest(folder, framework)
    for _ in range(_MOST_READS):
        try:
            return _read_files(folder, files)
        except FileNotFoundError as error:
            earlier_files = files
            files = read_manifest(folder, framework)
            # Otherwise another call has written new files and removed this one.
            if files == earlier_files:
                raise damaged(Path(error.filename), "is missing") from None
    raise damaged(folder, "keeps changing while it is read")


def _read_files(
    folder: Path, files: Mapping[str, FileEntry]
) -> tuple[list[dict[str, Any]], HeldTexts]:
    """Read a manifest's files, or raise ``FileNotFoundError`` if one is missing."""
    arrays: dict[str, NDArray[Any]] = {}
    documents: list[dict[str, Any]] = []
    for name, entry in files.items():
        file_path = folder / str(entry["file"])
        content = _checked_content(file_path, entry, needed=name == DOCUMENTS_FILE)
        try:
            if name == DOCUMENTS_FILE:
                documents = _documents_of(content.splitlines())
            else:  # mapped, so that it can be used after the file was removed
                arrays[name] = np.lib.format.open_memmap(file_path, mode="r")
        except FileNotFoundError:
            raise
        except Exception as error:  # numpy reads a header with Python's tokenizer
            raise damaged(file_path, f"cannot be read ({error!s:.200})") from None
    try:
        return documents, HeldTexts.from_arrays(arrays)
    except (
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        RecursionError,
    ) as error:
        raise damaged(folder, f"has an index that cannot be used ({error})") from None


def _checked_content(file_path: Path, entry: FileEntry, *, needed: bool) -> bytes:
    """Compare a file with its entry, and return its content where that is needed."""
    if file_path.exists() and not file_path.is_file():  # reading a pipe would never end
        raise damaged(file_path, "is not a regular file")
    expected = {"bytes": entry.get("bytes"), "sha256": entry.get("sha256")}
    with file_path.open("rb") as file:
        # Checked first: a digest of a sparse file of a terabyte takes an hour.
        same_size = os.fstat(file.fileno()).st_size == expected["bytes"]
        if not same_size or size_and_digest(file) != expected:
            raise damaged(file_path, "is not the file that was written")
        file.seek(0)
        return file.read() if needed else b""


def _documents_of(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    documents = [json.loads(line) for line in lines]
    if not all(isinstance(document, dict) for document in documents):
        raise ValueError("a line is not an object")
    return documents
