"""Start a model's token embedding from word vectors instead of chance."""

import math

import torch
from tokenizers import Tokenizer

from spscanner_rag.lexical.word_vectors import UNKNOWN, WordVectors
from spscanner_rag.mamba2.model import Mamba2Mixer, ScannerModel

SCALE = 0.02
"""Standard deviation of the numbers of an embedding before training, whether it starts from words or not."""


def start_embedding(model: ScannerModel, tokenizer: Tokenizer, vectors: WordVectors, seed: int) -> int:
    """Replace the embedding of every whole-word token by that word's vector, in place; return how many.

    The vectors are projected to the width of the model at random, which keeps their cosines nearly.
    """
    ids = range(tokenizer.get_vocab_size())
    rows = vectors.rows(
        tokenizer.decode([number], skip_special_tokens=False).strip().lower() for number in ids
    )
    known = (rows != UNKNOWN).nonzero()[0]  # (known tokens,)
    weight = model.backbone.embedding.weight
    generator = torch.Generator().manual_seed(seed)
    projection = torch.randn(vectors.dimensions, weight.shape[1], generator=generator) * SCALE
    # a vector has length 1, so its projection has the numbers' standard deviation of the projection
    projected = torch.from_numpy(vectors.of_rows(rows[known])) @ projection  # (known tokens, d_model)
    with torch.no_grad():
        weight[torch.from_numpy(known)] = projected.to(weight)
    return len(known)


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
