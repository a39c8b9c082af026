"""Find the folder of a checkpoint: a local one, the bundled one, or one of the Hub."""

import re
from pathlib import Path
from typing import Final

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import CONFIG, FILES, PLACE
from spscanner_rag.checkpoint.hub import HubOptions, download_weights

_BUNDLED: Final = Path(__file__).parent / "bundled"
_REPOSITORY: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)


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


def current_files(folder: Path) -> Path:
    """Return the folder from which a checkpoint is read.

    It is the given one, unless a save into it was interrupted.
    """
    place = folder / PLACE
    return place if (place / CONFIG).is_file() else folder
