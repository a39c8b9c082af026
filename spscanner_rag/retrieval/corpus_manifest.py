"""The manifest of a corpus folder: which files belong to it, with sizes and digests."""

import json
import re
from hashlib import file_digest
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import Any

DOCUMENTS_FILE = "documents.jsonl"
MANIFEST_FILE = "manifest.json"

_FORMAT = 1
_KIND = "spscanner-rag corpus"
_MOST_FILES = 64
_LARGEST_MANIFEST = 2**16
_LISTED_FILE = re.compile(r"[0-9a-f]{12}\.(documents\.jsonl|\w+\.npy)")
_UNFINISHED_FILE = re.compile(
    rf"{_LISTED_FILE.pattern}|\.{re.escape(MANIFEST_FILE)}\.[0-9a-f]{{32}}\.part"
)

FileEntry = dict[str, Any]
"""A file's name in the folder, its size and its digest."""


def manifest_text(framework: str, n_documents: int, files: dict[str, FileEntry]) -> str:
    """The manifest of these files as JSON."""
    manifest = {
        "kind": _KIND,
        "format": _FORMAT,
        "framework": framework,
        "documents": n_documents,
        "files": files,
    }
    return json.dumps(manifest, indent=1) + "\n"


def read_manifest(folder: Path, framework: str | None) -> dict[str, FileEntry]:
    """The entries of a folder's files, by what they hold.

    ``framework`` None accepts those of any framework. ``ValueError`` for a manifest
    that is missing, damaged or of another kind.
    """
    file_path = folder / MANIFEST_FILE
    if not file_path.is_file():
        raise ValueError(
            f"{folder}: got no {MANIFEST_FILE} there; expected a folder that"
            " persist(path) wrote"
        )
    manifest = _read_json(file_path)
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ValueError(
            f"{file_path}: got a manifest of another program; expected a folder that"
            " persist(path) wrote"
        )
    if manifest.get("format") != _FORMAT:
        raise ValueError(
            f"{file_path}: got format {manifest.get('format')!r:.20}; expected"
            f" {_FORMAT}: read it with the version of spscanner-rag that wrote it, or"
            " persist the documents again"
        )
    if framework is not None and manifest.get("framework") != framework:
        raise ValueError(
            f"{file_path}: got documents of {manifest.get('framework')!r:.40}; expected"
            f" those of {framework!r}: load it with that framework's retriever"
        )
    files: dict[str, FileEntry] = manifest.get("files") or {}
    if not _lists_files(files):
        raise damaged(file_path, "does not list the files")
    return files


def _read_json(file_path: Path) -> object:
    try:
        with file_path.open("rb") as file:
            content = file.read(_LARGEST_MANIFEST + 1)
        if len(content) > _LARGEST_MANIFEST:
            raise ValueError(f"more than {_LARGEST_MANIFEST} bytes")
        manifest: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(file_path, f"is not JSON ({error})") from None
    return manifest


def _lists_files(files: object) -> bool:
    """Whether these are entries of our files.

    A name from a damaged manifest must not lead to a file elsewhere.
    """
    if not isinstance(files, dict) or DOCUMENTS_FILE not in files:
        return False
    if len(files) > _MOST_FILES:
        return False
    for entry in files.values():
        if not isinstance(entry, dict):
            return False
        if not _LISTED_FILE.fullmatch(str(entry.get("file"))):
            return False
    return True


def is_unfinished(file_path: Path) -> bool:
    """Tell whether a file's name is one that a killed program may leave."""
    return _UNFINISHED_FILE.fullmatch(file_path.name) is not None


def size_and_digest(file: BufferedReader | BufferedRandom) -> FileEntry:
    """The size and the digest of an open file."""
    file.seek(0)
    digest = file_digest(file, "sha256").hexdigest()
    return {"bytes": file.tell(), "sha256": digest}


def damaged(file_path: Path, what: str) -> ValueError:
    """The error for a file or folder that is not as it was written."""
    return ValueError(
        f"{file_path} {what}; expected it as persist(path) wrote it: persist the"
        " documents again"
    )
