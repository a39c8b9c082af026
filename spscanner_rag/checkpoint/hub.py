"""The folder of a checkpoint: a local one, the bundled one, or one downloaded from the Hugging Face Hub."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from spscanner_rag.checkpoint.file_access import CONFIG, FILES, PICKLED, SAFETENSORS, CheckpointError

_REPOSITORY = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)


class HubOptions(TypedDict, total=False):
    """Options for fetching a model from the Hub; the keyword arguments of everything that may download."""

    revision: str | None  # branch, tag or commit; default: the main branch
    token: str | bool | None  # True: the one stored on this machine, False: none; never part of a message
    cache_dir: str | Path | None  # default: the cache of `huggingface_hub`
    local_files_only: bool  # never use the network


def is_local_path(name: str) -> bool:
    """True if a name can only be meant as a path: no Hub repository is called that."""
    return name.startswith((".", "~")) or _REPOSITORY.fullmatch(name) is None


def local_path(name: str | Path, what: str) -> Path | None:
    """The file or folder of a name; None for a Hub id, `CheckpointError` for a path to nothing."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    if isinstance(name, Path) or "/" not in name or is_local_path(name):
        raise CheckpointError(
            f"{name}: no such folder; expected the folder of {what}, or a Hub id owner/name"
        )
    return None


def download(repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]) -> Path:
    """Return the cached folder of a repository, named by its commit, after downloading missing files silently."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(repository, allow_patterns=list(patterns), tqdm_class=_silent_bar(), **hub)
        )
    except Exception as error:  # the HTTP library may raise anything
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            error = error.__cause__  # why the look-up failed; the other only tells of the cache
        reason = " ".join(f"{type(error).__name__}: {error}".split())
    # Raised here, since the caught error keeps the request with its authorization header.
    if isinstance(token := hub.get("token"), str) and token:
        reason = reason.replace(token, "***")
    raise CheckpointError(
        f"cannot get {repository} from the Hugging Face Hub: {reason:.600}; check name, revision and token=, go "
        "online, or pass a local folder that holds it"
    )


def _silent_bar() -> Any:  # noqa: ANN401 - a class of an untyped library
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(kwargs | {"disable": True}))  # type: ignore[no-untyped-call]

    return SilentBar


_BUNDLED: Final = Path(__file__).parent / "bundled"


def local_folder(name: str | Path | None) -> Path | None:
    """The local folder of a checkpoint's name; None for a Hub id, `CheckpointError` for neither."""
    if name is None or (name == "default" and not Path(name).is_dir()):
        return _BUNDLED
    if not isinstance(name, str | Path) or not str(name):
        raise CheckpointError(f"checkpoint {name!r}; expected a folder, a Hub id owner/name, or None")
    path = local_path(name, "a checkpoint")
    if path is not None and not path.is_dir():
        raise CheckpointError(f"{name}: a file; expected the folder of a checkpoint, with {CONFIG} in it")
    return path


def download_weights(repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]) -> Path:
    """`download`; pickled weights only where there are no others, and from the same commit."""
    folder = download(repository, patterns, **hub)
    if (folder / SAFETENSORS).is_file() or (folder / PICKLED).is_file():
        return folder
    hub["revision"] = folder.name
    return download(repository, (*patterns, PICKLED), **hub)


def locate(
    name: str | Path | None,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
    local_files_only: bool = False,
) -> Path:
    """Return the folder of a checkpoint, None or "default" being the bundled one; else `CheckpointError`."""
    folder = local_folder(name)
    if folder is not None:
        return folder
    hub = HubOptions(revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only)
    return download_weights(str(name), FILES, **hub)
