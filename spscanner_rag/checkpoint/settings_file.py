"""Read ``config.json``: the model's shape, the settings and the digests."""

from pathlib import Path
from typing import Final

from spscanner_rag.checkpoint.bounded_files import read_json
from spscanner_rag.checkpoint.config import ScannerSettings
from spscanner_rag.checkpoint.digests import Digests
from spscanner_rag.checkpoint.errors import faults_of
from spscanner_rag.checkpoint.file_names import CONFIG
from spscanner_rag.checkpoint.layout import SCANNER, Layout
from spscanner_rag.mamba2.config import Mamba2Config

PUBLISHED_VOCAB_SIZE: Final = 50277
PUBLISHED_WINDOW_TOKENS: Final = 120_000


def read_settings(
    folder: Path, layout: Layout = SCANNER
) -> tuple[Mamba2Config, ScannerSettings, bool, Digests]:
    """Read ``config.json``.

    Returns the model's shape, the settings, whether it is a published scanner, and the
    digests of its files.
    """
    path = folder / CONFIG
    with faults_of(path):
        raw = read_json(path)
        config = layout.config(raw)
        if "spscanner" in raw:
            settings = ScannerSettings.from_dict(raw["spscanner"])
            return config, settings, False, Digests(raw)
    if config.vocab_size == PUBLISHED_VOCAB_SIZE:
        return (
            config,
            ScannerSettings("reference", window_tokens=PUBLISHED_WINDOW_TOKENS),
            True,
            Digests(),
        )
    return config, ScannerSettings(), False, Digests()
