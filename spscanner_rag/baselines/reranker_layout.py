"""The checkpoints that a Mamba reranker reads: ours, mamba-ssm's and transformers'."""

from collections.abc import Mapping
from typing import Any, Final

from spscanner_rag.baselines.mamba1 import Mamba1Config
from spscanner_rag.checkpoint.config import canonical_name
from spscanner_rag.checkpoint.config import read_config as read_mamba2_config
from spscanner_rag.checkpoint.layout import Layout
from spscanner_rag.mamba2.config import Mamba2Config


def _name_in_classifier(name: str) -> str:
    """Our name for a sequence classifier's tensor.

    Its head is ``score``, and its backbone may be ``model``.
    """
    if name.startswith("score."):
        return name.replace("score.", "binary_head.", 1)
    return canonical_name(name.removeprefix("model."))


def read_config(config: Mapping[str, Any]) -> Mamba2Config:
    """Read a ``config.json`` of Mamba-1 or Mamba-2, in either library's layout."""
    ssm_cfg = config.get("ssm_cfg") or {}
    if "d_model" in config and isinstance(ssm_cfg, Mapping):
        first = ssm_cfg.get("layer", "Mamba1") == "Mamba1"
    else:
        first = config.get("model_type") == "mamba"
    return Mamba1Config.from_dict(config) if first else read_mamba2_config(config)


RERANKER: Final = Layout(read_config, _name_in_classifier)
"""Our layout, `mamba_ssm`'s and transformers', for Mamba-1 and Mamba-2."""
