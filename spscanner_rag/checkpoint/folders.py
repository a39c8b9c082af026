"""The folder of a checkpoint: a local one, the bundled one, or one downloaded from the Hub."""

from pathlib import Path
from typing import Final, Unpack

from spscanner_rag.checkpoint.config_file import CONFIG
from spscanner_rag.checkpoint.file_access import CheckpointError
from spscanner_rag.checkpoint.hub import HubOptions, check_hub_options, download, is_local_path
from spscanner_rag.checkpoint.tensor_files import (
    PICKLED,
    SAFETENSORS,
    SAFETENSORS_INDEX,
    has_weights,
)
from spscanner_rag.checkpoint.tokenizer_file import TOKENIZER
from spscanner_rag.checkpoint.word_vectors_file import WORD_VECTORS

_BUNDLED: Final = Path(__file__).parent / "bundled"
_HUB_FILES: Final = (
    CONFIG,
    TOKENIZER,
    WORD_VECTORS,
    SAFETENSORS,
    SAFETENSORS_INDEX,
    "model-*-of-*.safetensors",
)


def local_folder(name: str | Path | None) -> Path | None:
    """The folder that a checkpoint's name stands for on this machine; None if it can only be a Hub id.

    Raises `CheckpointError` for a name that is neither.
    """
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


def locate(name: str | Path | None, *, progress: bool = False, **hub: Unpack[HubOptions]) -> Path:
    """Return the folder of a checkpoint, downloading it if it is on the Hub.

    Parameters
    ----------
    name : str, Path or None
        A local folder, else a Hub id ``owner/name``; None, or "default", is the bundled checkpoint.
    progress : bool, default False
        Show progress bars of a download.
    revision, token, cache_dir, local_files_only
        See `HubOptions`.

    Raises
    ------
    CheckpointError
        If there is no such folder or repository, or it cannot be downloaded.
    """
    check_hub_options(hub)
    folder = local_folder(name)
    if folder is not None:
        return folder
    name = str(name)  # a Hub id
    folder = download(name, _HUB_FILES, progress=progress, **hub)
    if has_weights(folder):
        return folder
    # Pickled weights are fetched only where there are no others, and from the same commit.
    hub["revision"] = folder.name
    return download(name, (*_HUB_FILES, PICKLED), progress=progress, **hub)
