"""Find, verify, load and save checkpoints: folders of configuration and weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spscanner_rag.system.torch_absence import torch_needed_for

if TYPE_CHECKING:
    from spscanner_rag.checkpoint.config import ScannerSettings
    from spscanner_rag.checkpoint.errors import CheckpointError
    from spscanner_rag.checkpoint.load import Checkpoint, load_checkpoint, load_model
    from spscanner_rag.checkpoint.location import local_folder, locate
    from spscanner_rag.checkpoint.model_weights import new_model

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
    "CheckpointError": "errors",
    "ScannerSettings": "config",
    "load_checkpoint": "load",
    "load_model": "load",
    "local_folder": "location",
    "locate": "location",
    "new_model": "model_weights",
    "save_checkpoint": "save",
}


def __getattr__(
    name: str,
) -> Any:  # noqa: ANN401 - type checkers find `save_checkpoint` in its module
    # Modules that only write files also import this package, and loading needs torch,
    # which is slow to import.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with torch_needed_for(f"checkpoint.{name}"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
