"""The published evaluation's way to read: mamba-ssm's language model, the whole document and its head at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config


def published_forward(
    config: Mamba2Config, device: torch.device, dtype: torch.dtype
) -> Callable[[torch.Tensor], object] | str:
    """How to read ids (tokens,), or why it cannot be measured here."""
    if device.type != "cuda":
        return "not measured: runs on CUDA only"
    # Mamba-1's extension, which release 2.3.2.post1 imports unasked and Mamba-2 does not use.
    sys.modules.setdefault("selective_scan_cuda", ModuleType("selective_scan_cuda"))
    try:
        from mamba_ssm import MambaLMHeadModel
        from mamba_ssm.models.config_mamba import MambaConfig
    except ImportError as error:
        return f"not measured: {error}"
    written = config.to_dict()
    known = {key: value for key, value in written.items() if hasattr(MambaConfig(), key)}
    model = MambaLMHeadModel(MambaConfig(**known), device=device, dtype=dtype).eval()
    return partial(_whole_document, model, device)


def _whole_document(model: Callable[..., Any], device: torch.device, input_ids: torch.Tensor) -> object:
    return model(input_ids[None].to(device)).logits[0, -1, 0].item()
