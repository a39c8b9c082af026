"""Refuse a model's folder that names a function to be called.

sentence-transformers imports and calls any function whose name begins with "torch.".
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from torch.nn.modules import activation

_KNOWN = {"Identity", *activation.__all__}
_MODULE = re.compile(r"torch\.nn(\.modules\.\w+)?")
# Under the first key, transformers has its own names for functions, such as "gelu_new".
_OF_TRANSFORMERS = "activation_function"
_KEYS = (_OF_TRANSFORMERS, "activation_fn", "sbert_ce_default_activation_function")


def check_activations(folder: Path) -> None:
    """Raise ``ValueError`` unless a model's activation functions are torch's."""
    for path in sorted({folder / "config.json", *folder.glob("*/config.json")}):
        try:
            settings = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # the loader reports it
        for name in _activations(settings):
            module, _, function = str(name).rpartition(".")
            if function not in _KNOWN or not _MODULE.fullmatch(module):
                raise ValueError(
                    f"{path}: names {name!r:.80} as an activation function; expected"
                    " one of torch.nn: pass trust_remote_code=True if you trust the"
                    " folder"
                )


def _activations(settings: object) -> Iterator[object]:
    """Yield the names of functions in a model's settings."""
    if not isinstance(settings, dict):
        return
    for key, value in settings.items():
        if key == "sentence_transformers":
            yield from _activations(value)
        if key not in _KEYS or value is None:
            continue
        if key != _OF_TRANSFORMERS or "." in str(value):
            yield value
