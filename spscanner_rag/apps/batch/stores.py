"""Opens inputs on this machine and at addresses that pyarrow's file systems know."""

import hashlib
import io
import os
from typing import Any, BinaryIO, cast

from spscanner_rag.system.install_hints import import_extra

_BUFFER_BYTES = 2**20


def is_address(path: str) -> bool:
    """Return whether a path names a file system, as ``s3://bucket/rows.parquet`` does.

    Examples
    --------
    >>> is_address("s3://bucket/rows.parquet"), is_address("rows.parquet")
    (True, False)
    """
    return "://" in path


def file_system_of(address: str) -> tuple[Any, str]:
    """Return the pyarrow file system of an address, and the path in it.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If no file system of pyarrow knows such an address.
    """
    pyarrow_fs = import_extra("pyarrow.fs", f"{address}: opening it", "parquet")
    try:
        file_system, path = pyarrow_fs.FileSystem.from_uri(address)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{address}: no file system of pyarrow opens it ({str(error)[:200]});"
            " expected an address such as s3://BUCKET/FOLDER, or a local path"
        ) from None
    return file_system, path


def state_of(path: str) -> tuple[int, ...]:
    """Return values that change whenever a file does, empty for a missing file.

    At an address these are the size and the time of the last change.
    """
    if is_address(path):
        file_system, inner_path = file_system_of(path)
        information = file_system.get_file_info(inner_path)
        if not information.is_file:
            return ()
        return (information.size, information.mtime_ns or 0)
    try:
        status = os.stat(path)
    except OSError:
        return ()  # opening it raises the error
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def open_input(path: str) -> BinaryIO:
    """Open a regular file for reading.

    Raises
    ------
    ValueError
        Names a path that cannot be read.
    """
    try:
        if is_address(path):
            file_system, inner_path = file_system_of(path)
            stream = file_system.open_input_file(inner_path)
            return cast(BinaryIO, io.BufferedReader(stream, _BUFFER_BYTES))
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(
                f"{path}: not a regular file; expected one that can be read twice: save"
                " it first"
            )
        return open(path, "rb")
    except OSError as error:
        reason = error.strerror or str(error)[:200]
        raise ValueError(
            f"{path}: cannot be read ({reason}); expected an existing file:"
            " check the path and the permissions"
        ) from None


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    # A file of size 0 is empty, or one of those of /proc, some of which never end.
    if os.path.exists(path) and os.stat(path).st_size == 0:
        return hashlib.sha256().hexdigest()
    with open_input(path) as file:
        return hashlib.file_digest(cast(io.BufferedReader, file), "sha256").hexdigest()


def files_below(folder: str, endings: tuple[str, ...]) -> list[str] | None:
    """List the files below a folder at an address that have one of the endings.

    Hidden files are left out. The paths are addresses, in order of name.

    Returns
    -------
    list of str, or None
        None if the address is no folder.
    """
    file_system, inner_folder = file_system_of(folder)
    from pyarrow.fs import FileSelector, FileType

    if file_system.get_file_info(inner_folder).type is not FileType.Directory:
        return None
    scheme = folder.partition("://")[0]
    addresses: list[str] = []
    for entry in file_system.get_file_info(FileSelector(inner_folder, recursive=True)):
        inside = entry.path[len(inner_folder) :].strip("/")
        is_hidden = any(name.startswith(".") for name in inside.split("/"))
        if entry.is_file and not is_hidden and inside.lower().endswith(endings):
            addresses.append(f"{scheme}://{entry.path}")
    return sorted(addresses)
