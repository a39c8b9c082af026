"""Find, verify, load and save checkpoints: a folder of ``config.json``, weights and ``tokenizer.json``."""

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
