"""Start the layers of a model so that a token recalls earlier tokens like it."""

import math

import torch

from spscanner_rag.mamba2.layers import Mamba2Mixer
from spscanner_rag.mamba2.model import ScannerModel

STEPS = (0.02, 0.1)
"""Smallest and largest time step of a layer's heads: how strongly a token is written into the state."""

DECAYS = (0.05, 0.5)
"""Smallest and largest -A of a layer's heads. With the steps, a state fades to 1/e over 20 to 1,000 tokens."""

_EARLIER_TAPS = 0.1  # of the numbers that the convolution starts with by default


def start_recall(model: ScannerModel, seed: int) -> None:
    """Replace the initial weights of every layer, in place, by such that recall.

    The state-space operator is an attention without softmax, y_t = sum_s decay(s, t) (C_t · B_s) dt_s x_s. It
    starts with C = B, a slow decay, and a convolution that passes tokens on, so that y_t is what was read at
    tokens like the one at t: mimetic initialization for state space models (arXiv 2410.11135). Beyond the paper,
    the gate starts equal to x and D at 0, so that gate times y is large where a token finds itself again.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for block in model.backbone.layers:
            mixer = block.mixer
            assert isinstance(mixer, Mamba2Mixer)
            _start(mixer, generator)


def _start(mixer: Mamba2Mixer, generator: torch.Generator) -> None:
    config, device = mixer.config, mixer.dt_bias.device
    group = config.ngroups * config.d_state
    sizes = [config.d_inner, config.d_inner, group, group, config.nheads]
    gate, x, B, C, _ = torch.split(mixer.in_proj.weight, sizes)
    for rows in (x, B):
        started = torch.nn.init.orthogonal_(torch.empty(rows.shape), generator=generator)
        # of more rows than columns only the columns have length 1
        rows.copy_(started * max(1.0, rows.shape[0] / rows.shape[1]) ** 0.5)
    gate.copy_(x)
    C.copy_(B)
    taps = mixer.conv1d.weight  # (conv_dim, 1, d_conv)
    taps.mul_(_EARLIER_TAPS)
    taps[:, :, -1] += 1.0
    if mixer.conv1d.bias is not None:
        mixer.conv1d.bias.zero_()
    steps = torch.linspace(math.log(STEPS[0]), math.log(STEPS[1]), config.nheads, device=device).exp()
    mixer.dt_bias.copy_(steps + torch.log(-torch.expm1(-steps)))  # softplus gives the steps back
    mixer.A_log.copy_(torch.linspace(*DECAYS, config.nheads, device=device).log())
    mixer.D.zero_()
