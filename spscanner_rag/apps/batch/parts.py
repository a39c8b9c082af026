"""Folders of parts: which parts are finished, and what a run writes there."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spscanner_rag.apps.batch.encoding import PartForm
from spscanner_rag.apps.batch.plan import Plan
from spscanner_rag.apps.batch.stores import file_system_of, is_address
from spscanner_rag.system.folder_lock import folder_lock
from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.outputs import check_results_folder
from spscanner_rag.system.run_inputs import (
    earlier_run,
    parse_description,
    refuse_other_run,
)
from spscanner_rag.system.strict_json import parse_object
from spscanner_rag.system.whole_files import write_whole

# Readers of Parquet folders ignore names that begin with an underscore.
IDENTITY = "_batch.json"
DIGESTS = "_parts.jsonl"
"""A line with the SHA-256 of each part, written before the part. A part without a line
is made again."""


_RESULTS = (IDENTITY, DIGESTS, "part-*")
_LOCAL_ADDRESS = "file://"


class PartChangedError(ValueError):
    """The content of a part is not what the run wrote."""


def part_name(number: int, form: PartForm) -> str:
    """Return the file name of a part.

    Examples
    --------
    >>> part_name(12, "parquet")
    'part-000012.parquet'
    """
    return f"part-{number:06d}.{form}"


class PartsFolder(ABC):
    """The folder of a run: its identity, its parts and their digests."""

    def __init__(self, name: str) -> None:
        self.name = name  # for messages

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Refuse the folder of another run, and write what identifies this one.

        Raises
        ------
        OtherRunError
        """
        if self.has_parts():
            refuse_other_run(self.name, self.earlier_identity(), identity)
        self.write(IDENTITY, (json.dumps(identity, indent=1) + "\n").encode())

    def finished(self, part_count: int, form: PartForm) -> set[int]:
        """Return the numbers of the parts that exist.

        Raises
        ------
        PartChangedError
            If a part was changed.
        """
        digests = self.digests()
        numbers: set[int] = set()
        for number in range(part_count):
            name = part_name(number, form)
            if name not in digests or not self.exists(name):
                continue
            content = self.content(name)
            if content is None or _digest_of(content) != digests[name]:
                raise PartChangedError(
                    f"{self.name}/{name}: its content is not what the run wrote; delete"
                    " it, and run the same command to make it again"
                )
            numbers.add(number)
        return numbers

    def write_part(self, name: str, content: bytes) -> None:
        """Write a part, and its digest before it."""
        self.add_digest(name, _digest_of(content))
        self.write(name, content)

    @abstractmethod
    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder, where its file system has locks."""

    @abstractmethod
    def has_parts(self) -> bool:
        """Return whether there is any part."""

    @abstractmethod
    def earlier_identity(self) -> dict[str, Any]:
        """Return what identifies the run whose parts the folder has."""

    @abstractmethod
    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each part that was written."""

    @abstractmethod
    def add_digest(self, name: str, digest: str) -> None:
        """Record the SHA-256 of a part."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Return whether there is anything with this name."""

    @abstractmethod
    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it is no file."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Write a file, all of it or nothing."""


class LocalFolder(PartsFolder):
    """A folder of this machine, which is locked and knows no half-written file."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, which is created if it does not exist."""
        with folder_lock(self._path):
            yield

    def has_parts(self) -> bool:
        """Return whether there is any part."""
        return any(self._path.glob("part-*"))

    def earlier_identity(self) -> dict[str, Any]:
        """Return what identifies the run whose parts the folder has."""
        return earlier_run(self._path / IDENTITY, "parts")

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each part, where the last line about a part counts."""
        digests: dict[str, str] = {}
        for _, line in complete_lines(self._path / DIGESTS):
            with suppress(ValueError, KeyError):
                record = parse_object(line)
                digests[str(record["part"])] = str(record["sha256"])
        return digests

    def add_digest(self, name: str, digest: str) -> None:
        """Append a line to the file of digests."""
        append_records(self._path / DIGESTS, [{"part": name, "sha256": digest}])

    def exists(self, name: str) -> bool:
        """Return whether there is anything with this name."""
        return (self._path / name).exists()

    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it is no file."""
        path = self._path / name
        return path.read_bytes() if path.is_file() else None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file once its content is complete."""
        write_whole(self._path / name, content)


class AddressFolder(PartsFolder):
    """A folder at an address such as ``s3://BUCKET/FOLDER``.

    An object store makes an object visible once it is complete. It has no locks, so
    users see to it that one run at a time writes there. The digest of each part is an
    object of its own, since objects cannot be appended to.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address.rstrip("/"))
        self._file_system, inner_path = file_system_of(address)
        self._inner_path = inner_path.rstrip("/")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder, with nothing locked."""
        self._file_system.create_dir(self._inner_path, recursive=True)
        yield

    def has_parts(self) -> bool:
        """Return whether there is any part."""
        return any(name.startswith("part-") for name in self._names(""))

    def earlier_identity(self) -> dict[str, Any]:
        """Return what identifies the run whose parts the folder has."""
        return parse_description(self.content(IDENTITY), self.name, IDENTITY, "parts")

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each part that was written."""
        digests: dict[str, str] = {}
        for name in self._names("_parts"):
            content = self.content(f"_parts/{name}")
            digests[name] = (content or b"").decode("ascii", "replace")
        return digests

    def add_digest(self, name: str, digest: str) -> None:
        """Write the digest as an object of its own."""
        self._file_system.create_dir(f"{self._inner_path}/_parts", recursive=True)
        self.write(f"_parts/{name}", digest.encode())

    def exists(self, name: str) -> bool:
        """Return whether there is a file with this name."""
        information = self._file_system.get_file_info(f"{self._inner_path}/{name}")
        return bool(information.is_file)

    def content(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is none."""
        if not self.exists(name):
            return None
        path = f"{self._inner_path}/{name}"
        with self._file_system.open_input_stream(path) as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Write an object, which is visible once it is complete."""
        path = f"{self._inner_path}/{name}"
        with self._file_system.open_output_stream(path) as stream:
            stream.write(content)

    def _names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        path = f"{self._inner_path}/{folder}".rstrip("/")
        selector = FileSelector(path, allow_not_found=True)
        entries = self._file_system.get_file_info(selector)
        return sorted(entry.base_name for entry in entries if entry.is_file)


def parts_folder(out: str | Path) -> PartsFolder:
    """Return the folder at a path, or at an address."""
    if is_address(str(out)):
        return AddressFolder(str(out))
    return LocalFolder(Path(out))


def check_parts_folder(out: str, plan: Plan, other_inputs: Sequence[str]) -> None:
    """Raise ``ValueError`` if a run would replace files of this machine that it reads.

    Parameters
    ----------
    out : str
        The folder for the parts.
    plan : Plan
        Its chunks have the inputs.
    other_inputs : sequence of str
        Files and folders that are read besides.
    """
    folder = out.removeprefix(_LOCAL_ADDRESS)
    if is_address(folder):
        return
    paths = {path.removeprefix(_LOCAL_ADDRESS) for path in plan.states}
    paths.update(other_inputs)
    check_results_folder(Path(folder), _RESULTS, sorted(paths))


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
