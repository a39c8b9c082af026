"""Make the model that a configuration and settings describe, with first weights or with given ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from spscanner_rag.checkpoint.settings import ScannerSettings
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.int8_linear import use_int8_projections
from spscanner_rag.mamba2.model import ScannerModel


def new_model(config: Mamba2Config, settings: ScannerSettings, *, head: bool = True) -> ScannerModel:
    """A model with initial weights, and with the parts of the lexical channel that the settings switch on."""
    return ScannerModel(
        config,
        match_embedding=settings.match,
        lexical_prior=settings.prior,
        surroundings=settings.surroundings,
        soft=settings.soft,
        head=head,
    )


def model_of(
    config: Mamba2Config,
    settings: ScannerSettings,
    tensors: Mapping[str, torch.Tensor],
    *,
    int8: bool = False,
) -> ScannerModel:
    """A model in evaluation mode that uses the given tensors; no other weights are allocated."""
    with torch.device("meta"), _WithoutFirstValues():
        model = new_model(config, settings)
        if int8:
            use_int8_projections(model)
    model.load_state_dict(tensors, assign=True)
    return model.eval()


class _WithoutFirstValues(TorchFunctionMode):
    """Skip the computation of initial weights, which a model on the meta device does not have.

    The first such operation on that device makes torch import 800 modules, which takes more than a second.
    """

    _SAME_SHAPE: Final = frozenset({"normal", "exp", "expm1", "log", "neg", "add"})  # without underscores

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "").strip("_") in self._SAME_SHAPE:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
