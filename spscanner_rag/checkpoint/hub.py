"""The folder of a checkpoint: a local one, the bundled one, or one downloaded from the Hugging Face Hub."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from spscanner_rag.checkpoint.file_access import CONFIG, FILES, PICKLED, SAFETENSORS_INDEX, CheckpointError
from spscanner_rag.checkpoint.tensor_files import has_weights

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


def without_token(message: str, token: str | bool | None) -> str:
    """Return the message with the access token replaced by ``***``."""
    return message.replace(token, "***") if isinstance(token, str) and token else message


def download(repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]) -> Path:
    """Return the cached folder of a repository, named by its commit, after downloading missing files silently."""
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(repository, allow_patterns=list(patterns), tqdm_class=_silent_bar(), **hub)
        )
    except Exception as error:  # the HTTP library may raise anything
        reason = _explain(error, repository, hub)
    # Raised here, since the caught error keeps the request with its authorization header.
    raise CheckpointError(
        f"cannot get {repository} from the Hugging Face Hub: {without_token(reason, hub.get('token'))}"
    )


def _explain(error: Exception, repository: str, hub: HubOptions) -> str:
    """Why a download failed and what to do, in one line."""
    from huggingface_hub import errors

    revision, cache_dir = hub.get("revision"), hub.get("cache_dir")
    if isinstance(error.__cause__, errors.HfHubHTTPError):
        error = error.__cause__  # the look-up's error; the other only says that the cache is empty
    if isinstance(error, errors.GatedRepoError):
        return "access is restricted; ask for it on the repository's page, then pass token="
    if isinstance(error, errors.RepositoryNotFoundError):
        return "no such repository, and no such local folder; check the name, or pass token= if it is private"
    if isinstance(error, errors.RevisionNotFoundError):
        return f"it has no revision {revision!r}; pass a branch, tag or commit that it has"
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        at = f" at revision {revision!r}" if revision else ""
        where = f"the cache {cache_dir}" if cache_dir else "the cache"
        return (
            f"it is not, or not completely, in {where}{at}, and the network is off or out of reach;"
            f" go online once, or pass a local folder that holds {repository}"
        )
    if isinstance(error, errors.HfHubHTTPError):
        status = getattr(error.response, "status_code", "an error")
        return f"the Hub answered {status}; check the token and the name, or try again later"
    first_line = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {first_line}; try again, or pass a local folder"


def _silent_bar() -> Any:  # noqa: ANN401 - a class of an untyped library
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(kwargs | {"disable": True}))  # type: ignore[no-untyped-call]

    return SilentBar


_BUNDLED: Final = Path(__file__).parent / "bundled"
_HUB_FILES: Final = (CONFIG, SAFETENSORS_INDEX, *FILES, "model-*-of-*.safetensors")


def local_folder(name: str | Path | None) -> Path | None:
    """The local folder of a checkpoint's name; None for a Hub id, `CheckpointError` for neither."""
    if name is not None and (not isinstance(name, str | Path) or not str(name)):
        raise CheckpointError(f"checkpoint {name!r}; expected a folder, a Hub id owner/name, or None")
    folder = _BUNDLED if name is None else Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name == "default":
        return local_folder(None)
    if folder.exists():
        raise CheckpointError(f"{name}: a file; expected the folder of a checkpoint, with {CONFIG} in it")
    if name is None:
        raise CheckpointError(f"{folder}: the bundled checkpoint is missing; install spscanner-rag again")
    if isinstance(name, Path) or "/" not in name or is_local_path(name):
        raise CheckpointError(
            f"{name}: no such folder; expected the folder of a checkpoint, or a Hub id owner/name"
        )
    return None


def download_weights(repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]) -> Path:
    """`download`; pickled weights only where there are no others, and from the same commit."""
    folder = download(repository, patterns, **hub)
    if has_weights(folder):
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
    return download_weights(str(name), _HUB_FILES, **hub)
