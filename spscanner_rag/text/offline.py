"""Whether the environment forbids downloads."""

import os

_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


def network_is_off() -> bool:
    """True if a variable that ``huggingface_hub`` reads forbids downloads."""
    return any(os.environ.get(name, "").upper() in _TRUE for name in _VARIABLES)
