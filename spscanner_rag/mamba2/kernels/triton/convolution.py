"""The causal depthwise convolution and its SiLU as one Triton kernel.

Imported only where Triton is.
"""

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

_TOKENS = 32
_CHANNELS = 128


@triton.jit
def _convolve_kernel(
    inputs,
    tail,
    weight,
    bias,
    sequence_index,
    out,
    tokens,
    channels,
    inputs_batch_stride,
    inputs_token_stride,
    WIDTH: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    PACKED: tl.constexpr,
    TOKENS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    row = tl.program_id(2).to(tl.int64)
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    in_channels = (channel < channels)[None, :]
    total = tl.zeros((TOKENS, CHANNELS), dtype=tl.float32)
    if PACKED:
        sequence_of_token = tl.load(
            sequence_index + row * tokens + token, mask=token < tokens, other=0
        )
    for tap in tl.static_range(WIDTH):
        source = token + tap - (WIDTH - 1)  # negative in the tail
        inside = (source >= 0) & (source < tokens)
        before = (source < 0) & (token < tokens)
        if PACKED:
            sequence_of_source = tl.load(
                sequence_index + row * tokens + source, mask=inside, other=0
            )
            inside = inside & (sequence_of_source == sequence_of_token)
            before = before & (sequence_of_token == 0)
        here = (
            row * inputs_batch_stride
            + source.to(tl.int64)[:, None] * inputs_token_stride
            + channel[None, :]
        )
        value = tl.load(
            inputs + here, mask=inside[:, None] & in_channels, other=0.0
        ).to(tl.float32)
        there = (row * (WIDTH - 1) + source + WIDTH - 1)[:, None] * channels + channel[
            None, :
        ]
        value += tl.load(
            tail + there, mask=before[:, None] & in_channels, other=0.0
        ).to(tl.float32)
        tap_weight = tl.load(
            weight + channel * WIDTH + tap, mask=channel < channels, other=0.0
        )
        total += value * tap_weight.to(tl.float32)[None, :]
    if HAS_BIAS:
        total += tl.load(bias + channel, mask=channel < channels, other=0.0).to(
            tl.float32
        )[None, :]
    total = total * tl.sigmoid(total)
    place = (row * tokens + token)[:, None] * channels + channel[None, :]
    tl.store(out + place, total, mask=(token < tokens)[:, None] & in_channels)


def convolve(
    inputs: Tensor,
    tail: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    sequence_index: Tensor | None,
) -> Tensor:
    """Causal depthwise convolution and SiLU, summed in float32.

    The result is (batch, tokens, channels), in the dtype of ``inputs``.

    ``inputs``, (batch, tokens, channels), has channels innermost; the other strides are
    free, so a slice of a projection needs no copy. ``tail``, (batch, d_conv - 1,
    channels), has the inputs before sequence 0. ``weight`` is (channels, 1, d_conv). A
    token reads only tokens with its own ``sequence_index``, (batch, tokens), int32.
    """
    batch, tokens, channels = inputs.shape
    if inputs.stride(-1) != 1:
        inputs = inputs.contiguous()
    out = torch.empty(batch, tokens, channels, dtype=inputs.dtype, device=inputs.device)
    grid = (triton.cdiv(tokens, _TOKENS), triton.cdiv(channels, _CHANNELS), batch)
    # Triton launches on the current device, which may differ from that of the inputs.
    with torch.cuda.device(inputs.device) if inputs.is_cuda else nullcontext():
        _convolve_kernel[grid](
            inputs,
            tail.contiguous(),
            weight.contiguous(),
            bias if bias is not None else weight,  # any valid pointer: it is not read
            sequence_index.contiguous() if sequence_index is not None else weight,
            out,
            tokens,
            channels,
            *inputs.stride()[:2],
            WIDTH=weight.shape[-1],
            HAS_BIAS=bias is not None,
            PACKED=sequence_index is not None,
            TOKENS=_TOKENS,
            CHANNELS=_CHANNELS,
        )
    return out
