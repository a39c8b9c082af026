"""Whether this process may use the network, as the Hub's client decides it."""

import os

_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def network_is_off() -> bool:
    """Whether the environment forbids downloads, with the variables that ``huggingface_hub`` reads."""
    return any(os.environ.get(name, "").upper() in {"1", "ON", "YES", "TRUE"} for name in _VARIABLES)
