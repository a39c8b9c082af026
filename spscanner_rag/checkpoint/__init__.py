"""Find, verify, load and save checkpoints: a folder of ``config.json``, weights and ``tokenizer.json``."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spscanner_rag.checkpoint.config import ScannerSettings
    from spscanner_rag.checkpoint.file_access import CheckpointError
    from spscanner_rag.checkpoint.hub import local_folder, locate
    from spscanner_rag.checkpoint.load import Checkpoint, load_checkpoint, load_model, new_model
    from spscanner_rag.checkpoint.save import save_checkpoint

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

_MODULES = {
    "Checkpoint": "load",
    "CheckpointError": "file_access",
    "ScannerSettings": "config",
    "load_checkpoint": "load",
    "load_model": "load",
    "local_folder": "hub",
    "locate": "hub",
    "new_model": "load",
    "save_checkpoint": "save",
}


def __getattr__(name: str) -> object:
    # Whoever writes a file whole imports this package, and loading needs torch, which is slow to import.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
