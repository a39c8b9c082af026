"""Opening and listing inputs: local paths, and addresses that pyarrow's file systems understand."""

import hashlib
import io
from pathlib import Path
from typing import Any, BinaryIO, cast

BUFFER_BYTES = 2**20


def is_address(path: str) -> bool:
    """Whether a path names a file system, such as ``s3://bucket/rows.parquet``."""
    return "://" in path


def opened(path: str) -> BinaryIO:
    """Open a file to read from any place in it; ``ValueError`` names what cannot be read."""
    try:
        if not is_address(path):
            return open(path, "rb", buffering=BUFFER_BYTES)
        system, place = _system(path)
        return cast(BinaryIO, io.BufferedReader(system.open_input_file(place), BUFFER_BYTES))
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read ({error.strerror or str(error)[:200]}); expected an existing file: check the "
            "path and the permissions"
        ) from None


def files_in(folder: str, endings: tuple[str, ...]) -> list[str] | None:
    """The files below a folder with one of these endings, in the order of their paths; None if it is no folder.

    Hidden files, and those whose name begins with an underscore, are left out, as other readers of Parquet do.
    """
    if not is_address(folder):
        root = Path(folder)
        if not root.is_dir():
            return None
        paths = [(str(path), path.relative_to(root).parts) for path in root.rglob("*") if path.is_file()]
    else:
        system, place = _system(folder)
        from pyarrow.fs import FileSelector, FileType

        if system.get_file_info(place).type is not FileType.Directory:
            return None
        found = system.get_file_info(FileSelector(place, recursive=True))
        scheme = folder.partition("://")[0]
        within = [
            (each.path, each.path[len(place) :].strip("/")) for each in found if each.type is FileType.File
        ]
        paths = [(f"{scheme}://{path}", tuple(inner.split("/"))) for path, inner in within]
    return sorted(
        path
        for path, parts in paths
        if parts[-1].lower().endswith(endings) and not any(part.startswith((".", "_")) for part in parts)
    )


def digest(path: str) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with opened(path) as file:
        return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()


def _system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from pyarrow.fs import FileSystem
    except ImportError as error:
        raise ImportError(f'{address}: reading it needs pyarrow: pip install "spscanner-rag[ray]"') from error
    try:
        return cast(tuple[Any, str], FileSystem.from_uri(address))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{address}: no file system of pyarrow reads it ({str(error)[:200]}); expected an address such as "
            "s3://BUCKET/FOLDER or a local path"
        ) from None
