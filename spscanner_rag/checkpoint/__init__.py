"""Find, verify, load and save checkpoints: folders of configuration and weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spscanner_rag.checkpoint.config import ScannerSettings
    from spscanner_rag.checkpoint.file_access import (
        CheckpointError,
        local_folder,
        locate,
    )
    from spscanner_rag.checkpoint.load import (
        Checkpoint,
        load_checkpoint,
        load_model,
        new_model,
    )

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ScannerSettings",
    "load_checkpoint",
    "load_model",
    "local_folder",
    "locate",
    "new_model",
    "save_checkpoint",
]


def __getattr__(
    name: str,
) -> Any:  # noqa: ANN401 - type checkers find `save_checkpoint` in its module
    # Modules that only write files also import this package, and loading needs torch,
    # which is slow to import.
    for module in ("file_access", "config", "load", "save") if name in __all__ else ():
        if hasattr(loaded_module := import_module(f"{__name__}.{module}"), name):
            return getattr(loaded_module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
