"""Find, verify, load and save checkpoints: a folder of ``config.json``, weights and ``tokenizer.json``."""

from spscanner_rag.checkpoint.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_model,
    locate,
    new_model,
    save_checkpoint,
)
from spscanner_rag.checkpoint.config_file import ScannerSettings
from spscanner_rag.checkpoint.tensor_files import CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "ScannerSettings",
    "load_checkpoint",
    "load_model",
    "locate",
    "new_model",
    "save_checkpoint",
]
