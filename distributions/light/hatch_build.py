"""The metadata of ``spscanner-rag-light``: those of ``spscanner-rag`` without torch."""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FULL = "spscanner-rag"
NEED_TORCH = ("baselines", "cpu", "cuda")
"""Extras whose packages need torch."""

FOR_CHECKOUTS = ("dev", "docs", "test")
"""Extras of those who change the package."""

TAKEN_AS_THEY_ARE = ("authors", "classifiers", "entry-points", "keywords", "scripts")


class LightMetadata(MetadataHookInterface):
    """Takes the metadata of the full distribution, and leaves out torch."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what `pyproject.toml` here calls dynamic, but for the version."""
        path = Path(self.root).parents[1] / "pyproject.toml"
        full = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for key in TAKEN_AS_THEY_ARE:
            metadata[key] = full[key]
        metadata["dependencies"] = without_torch(full["dependencies"])
        extras = light_extras(full["optional-dependencies"])
        metadata["optional-dependencies"] = extras


def without_torch(requirements: list[str]) -> list[str]:
    """Return the requirements but torch."""
    return [line for line in requirements if not re.match(r"torch\b", line)]


def light_extras(extras: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the extras that need no torch.

    An extra that is made of others is left out: it may need torch through them.
    """
    light = {}
    for extra, requirements in extras.items():
        is_made_of_others = any(line.startswith(f"{FULL}[") for line in requirements)
        if extra in NEED_TORCH + FOR_CHECKOUTS or is_made_of_others:
            continue
        light[extra] = requirements
    return light
