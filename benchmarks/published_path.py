"""Reads as the published evaluation does: mamba-ssm's language model and its head, the whole document at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from spscanner_rag.mamba2.config import Mamba2Config


class NotMeasuredError(Exception):
    """Something cannot be measured here; the message says why."""


def published_forward(
    config: Mamba2Config, device: torch.device, dtype: torch.dtype
) -> Callable[[torch.Tensor], object]:
    """A function that reads ids (tokens,). Both it and this function raise `NotMeasuredError`."""
    if device.type != "cuda":
        raise NotMeasuredError("runs on CUDA only")
    # Mamba-1's extension, which release 2.3.2.post1 always imports and Mamba-2 does not use.
    sys.modules.setdefault("selective_scan_cuda", ModuleType("selective_scan_cuda"))
    try:
        from mamba_ssm import MambaLMHeadModel
        from mamba_ssm.models.config_mamba import MambaConfig
    except ImportError as error:
        raise NotMeasuredError(str(error)) from error
    written = config.to_dict()
    known = {key: value for key, value in written.items() if hasattr(MambaConfig(), key)}
    model = MambaLMHeadModel(MambaConfig(**known), device=device, dtype=dtype).eval()
    return partial(_whole_document, model, device, config.d_in_proj)


def _whole_document(
    model: Callable[..., Any], device: torch.device, width: int, input_ids: torch.Tensor
) -> object:
    if len(input_ids) * width >= 2**31:
        raise NotMeasuredError(
            "its kernels count in 32 bits, and would give wrong numbers or end this process"
        )
    return model(input_ids[None].to(device)).logits[0, -1, 0].item()
