"""Find, open, read and verify the files of a checkpoint.

Anything wrong with one is a `CheckpointError`.

The folder is a local one, the bundled one, or one downloaded from the Hugging Face Hub.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from safetensors import SafetensorError
from safetensors.numpy import load

from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.text.escaping import first_line, unbroken

CONFIG: Final = "config.json"
PLACE: Final = ".new-checkpoint"  # where an interrupted save left the files
SAFETENSORS: Final = "model.safetensors"
PICKLED: Final = "pytorch_model.bin"
TOKENIZER: Final = "tokenizer.json"
WORD_VECTORS: Final = "word_vectors.safetensors"
ENCODER: Final = "encoder.safetensors"
FILES: Final = (CONFIG, SAFETENSORS, TOKENIZER, WORD_VECTORS, ENCODER)
"""The files that a checkpoint of ours may have; ``config.json`` has the digests of
the others."""

_WEIGHTS: Final = (SAFETENSORS, f"{SAFETENSORS}.index.json", "model-*.safetensors")
_PICKLED_WEIGHTS: Final = (PICKLED, f"{PICKLED}.index.json", "pytorch_model-*.bin")
"""Patterns of the files that hold weights on the Hub: one, or several with an index."""

Check = Callable[[Path, bytes], None]
"""Called with the path and the content of a file before the content is parsed; see
`Digests.check`."""

LARGEST_JSON: Final = 2**24
"""Maximum bytes of a ``config.json``; those of published models have less than
2**20."""

# maximum bytes of an encoder, or of two million words of 1,024 numbers
LARGEST_TABLE: Final = 2**31

_BUNDLED: Final = Path(__file__).parent / "bundled"
_REPOSITORY: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
# characters of a message that are kept
_MESSAGE_START = 1400
_MESSAGE_END = 600


class CheckpointError(ValueError):
    """A checkpoint cannot be found, read, verified or written.

    The message is one line of bounded length.
    """

    def __init__(self, message: str) -> None:
        message = unbroken(message)
        if len(message) > _MESSAGE_START + _MESSAGE_END:
            message = f"{message[:_MESSAGE_START]} [...] {message[-_MESSAGE_END:]}"
        super().__init__(message)


@contextmanager
def faults_of(path: Path, next_step: str = "") -> Iterator[None]:
    """Turn an error about a file's content into a `CheckpointError` that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        fault = str(error)
    except SafetensorError as error:
        fault = f"truncated, or not a safetensors file ({first_line(error)})"
    else:
        return
    raise CheckpointError(f"{path}: {fault}{next_step}")


class HubOptions(TypedDict, total=False):
    """Options for fetching a model from the Hub.

    The keyword arguments of everything that may download.
    """

    revision: str | None  # branch, tag or commit; default: the main branch
    # True: the one stored on this machine, False: none; never part of a message
    token: str | bool | None
    cache_dir: str | Path | None  # default: the cache of `huggingface_hub`
    local_files_only: bool  # never use the network


def is_local_path(name: str) -> bool:
    """Return whether a name can only be a path: no Hub repository has such a name."""
    return name.startswith((".", "~")) or _REPOSITORY.fullmatch(name) is None


def local_path(name: str | Path, what: str) -> Path | None:
    """The file or folder with a name.

    None for a Hub id, `CheckpointError` for a path that does not exist.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    if isinstance(name, Path) or "/" not in name or is_local_path(name):
        raise CheckpointError(
            f"{name}: no such folder; expected the folder of {what}, or a Hub id"
            " owner/name"
        )
    return None


def download(
    repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]
) -> Path:
    """Return the cached folder of a repository, named by its commit.

    Missing files are downloaded silently.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                repository,
                allow_patterns=list(patterns),
                tqdm_class=_silent_bar(),
                **hub,
            )
        )
    except Exception as error:  # the HTTP library may raise anything
        if isinstance(error, LocalEntryNotFoundError) and isinstance(
            error.__cause__, Exception
        ):
            # why the look-up failed; the other error is only about the cache
            error = error.__cause__
        reason = " ".join(f"{type(error).__name__}: {error}".split())
    # Raised here, since the caught error keeps the request with its authorization
    # header.
    if isinstance(token := hub.get("token"), str) and token:
        reason = reason.replace(token, "***")
    raise CheckpointError(
        f"cannot get {repository} from the Hugging Face Hub: {reason:.600}; check name,"
        " revision and token=, go online, or pass a local folder that holds it"
    )


def _silent_bar() -> Any:  # noqa: ANN401 - a class of an untyped library
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(kwargs | {"disable": True}))  # type: ignore[no-untyped-call]

    return SilentBar


def local_folder(name: str | Path | None) -> Path | None:
    """The local folder of a checkpoint's name.

    None for a Hub id, `CheckpointError` for neither.
    """
    if name is None or (name == "default" and not Path(name).is_dir()):
        return _BUNDLED
    if not isinstance(name, str | Path) or not str(name):
        raise CheckpointError(
            f"checkpoint {name!r}; expected a folder, a Hub id owner/name, or None"
        )
    path = local_path(name, "a checkpoint")
    if path is not None and not path.is_dir():
        raise CheckpointError(
            f"{name}: a file; expected the folder of a checkpoint, with {CONFIG} in it"
        )
    return path


def download_weights(
    repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]
) -> Path:
    """`download` the weights as well.

    Pickled ones are fetched only if there are no others, and from the same commit.
    """
    folder = download(repository, (*patterns, *_WEIGHTS), **hub)
    for name in (*_WEIGHTS[:2], *_PICKLED_WEIGHTS[:2]):
        if (folder / name).is_file():
            return folder
    hub["revision"] = folder.name
    return download(repository, (*patterns, *_PICKLED_WEIGHTS), **hub)


def locate(
    name: str | Path | None,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Return the folder of a checkpoint, None or "default" for the bundled one.

    Else raise `CheckpointError`.
    """
    folder = local_folder(name)
    if folder is not None:
        return folder
    hub = HubOptions(
        revision=revision,
        token=token,
        cache_dir=cache_dir,
        local_files_only=local_files_only,
    )
    return download_weights(str(name), FILES, **hub)


@contextmanager
def open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading.

    Refuse a git-LFS pointer, and a named pipe, which would wait forever.
    """
    try:
        if path.exists() and not path.is_file():
            raise CheckpointError(
                f"{path}: a folder, a pipe or a device; expected a regular file"
            )
        with path.open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                raise CheckpointError(
                    f"{path}: a git-LFS pointer, not the file itself; run `git lfs"
                    " pull` there"
                )
            file.seek(0)
            yield file
    except OSError as error:
        raise CheckpointError(
            f"{path}: {error.strerror}; expected a file that can be read"
        ) from None


def read_bytes(path: Path, largest: int, check: Check | None = None) -> bytes:
    """Read a file of at most ``largest`` bytes, and ``check`` it."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise CheckpointError(
                f"{path}: {size:,} bytes; expected at most {largest:,}: it is not a"
                " checkpoint's file"
            )
        content = file.read(size)
    if check is not None:
        check(path, content)
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    content = read_bytes(path, LARGEST_JSON)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: not JSON ({first_line(error)}); expected a JSON object"
        ) from None
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path}: a JSON {type(value).__name__}; expected an object"
        )
    return value


def read_word_vectors(path: Path, check: Check | None = None) -> WordVectors:
    """Read a table of word vectors after its `Digests.check`.

    `CheckpointError` if it is missing or damaged.
    """
    content = read_bytes(path, LARGEST_TABLE, check)
    with faults_of(path, "; download it again"):
        try:
            return WordVectors.from_arrays(load(content))
        except KeyError as error:  # a dtype that numpy does not have
            raise ValueError(
                f"a tensor is {error.args[0]}; expected int8, uint8 and floating-point"
            ) from None


DIGESTS: Final = "sha256"  # the key of the object "spscanner" that holds the digests
CONTENT: Final = "config"  # the key of the digest of ``config.json`` itself


class Digests:
    """The SHA-256 digests in ``config.json``: of files, and of itself.

    That of itself is under `CONTENT`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Read a parsed ``config.json``.

        ``ValueError`` if its digests are not an object, or it was changed.
        """
        self.checked: list[str] = []  # names of the files that were compared
        self._of = {} if config is None else config["spscanner"].get(DIGESTS, {})
        if not isinstance(self._of, Mapping):
            raise ValueError(
                f"spscanner.{DIGESTS} is {self._of!r}; expected an object of file names"
                " and digests"
            )
        if config is not None and CONTENT in self._of:
            self._compare(CONTENT, digest_of_config(config), CONFIG)

    def check(self, path: Path, content: bytes | None = None) -> None:
        """Raise `CheckpointError` if a file is not what was saved.

        ``content`` is that of the file, if it is already read.
        """
        if path.name in self._of:
            digest = (
                file_digest(path)
                if content is None
                else hashlib.sha256(content).hexdigest()
            )
            with faults_of(path):
                self._compare(path.name, digest, path.name)

    def _compare(self, name: str, digest: str, file: str) -> None:
        if digest != self._of[name]:
            raise ValueError(
                f"its SHA-256 is not spscanner.{DIGESTS}.{name} of {CONFIG}, so it was"
                " damaged or edited, or is another checkpoint's; download or save the"
                " checkpoint again (if you changed it on purpose, remove that entry)"
            )
        self.checked.append(file)


def digest_of_config(config: Mapping[str, Any]) -> str:
    """The SHA-256 of a parsed ``config.json`` without `CONTENT`.

    White space and the order of keys do not count.
    """
    section = config["spscanner"]
    others = {
        name: value for name, value in section[DIGESTS].items() if name != CONTENT
    }
    content = {**config, "spscanner": {**section, DIGESTS: others}}
    return hashlib.sha256(
        json.dumps(content, sort_keys=True).encode("ascii")
    ).hexdigest()


def fingerprint(folder: Path) -> str:
    """One SHA-256, in hexadecimal, of all files that decide what a folder computes."""
    files = [
        path
        for path in folder.iterdir()
        if path.suffix in (".json", ".safetensors", ".bin")
    ]
    content = {path.name: file_digest(path) for path in sorted(files)}
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def current_files(folder: Path) -> Path:
    """Return the folder from which a checkpoint is read.

    It is the given one, unless a save into it was interrupted.
    """
    place = folder / PLACE
    return place if (place / CONFIG).is_file() else folder
