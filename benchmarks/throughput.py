"""Tokens per second against transformers' Mamba-2, on the same random weights of the 130m shape.

transformers writes the weights, and `load_model` reads its layout. Both sides then read the same tokens in turn.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.clock import median_seconds
from benchmarks.random_weights import SHAPES, write_random_weights

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from spscanner_rag.mamba2.model import ScannerModel

REQUIRED = {"float32": 2.5, "bfloat16": 6.0}
"""How many times as fast as transformers in float32 this package must be on the 130m shape."""
TOLERANCE = 5e-3
"""Largest difference of hidden states in float32. They are of size 1 after the final norm, and 24 random layers
amplify rounding."""


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `transformers`."""
    command = commands.add_parser("transformers", help="tokens per second against transformers' Mamba-2")
    command.add_argument(
        "--tokens", type=int, default=2048, help="tokens of one forward pass (default: 2048)"
    )
    command.add_argument(
        "--repeats", type=int, default=5, help="forward passes of each kind; the median counts"
    )
    command.add_argument("--device", default="cpu")
    command.add_argument("--shape", choices=["130m", "tiny"], default="130m", help="tiny: for a trial run")
    command.set_defaults(measure=measure_throughput)
    return [command]


def measure_throughput(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Median tokens per second of the four kinds, ratios to transformers in float32, and agreement."""
    import torch  # imported in functions only: --help and other benchmarks do not need it

    with torch.inference_mode():
        return _measure(arguments)


def _measure(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    import torch

    from spscanner_rag.scan.devices import choose

    forwards = _forwards(arguments.shape, torch.device(arguments.device))
    input_ids = torch.randint(
        SHAPES[arguments.shape]["vocab_size"], (1, arguments.tokens), device=arguments.device
    )
    hidden = {name: forward(input_ids).float() for name, forward in forwards.items()}  # also the warm-up
    runs = {name: partial(forward, input_ids) for name, forward in forwards.items()}
    seconds = median_seconds(runs, arguments.repeats, input_ids.device, long_enough=math.inf)
    speed = {name: arguments.tokens / taken for name, taken in seconds.items()}
    reference = hidden["transformers float32"]
    difference = {name: (values - reference).abs().max().item() for name, values in hidden.items()}
    ratio = {dtype: speed[f"spscanner {dtype}"] / speed["transformers float32"] for dtype in REQUIRED}
    rows: dict[str, object] = {f"tokens/s, {name}": value for name, value in speed.items()}
    native = str(choose(arguments.device).dtype).removeprefix("torch.")
    # there is no bound for bfloat16 where it is emulated
    required = {dtype: REQUIRED[dtype] for dtype in ("float32", native)}
    for dtype, value in ratio.items():
        bound = f" (at least {required[dtype]:g})" if dtype in required else ", not native here"
        rows[f"{dtype} over transformers float32{bound}"] = value
    rows["bfloat16 over transformers bfloat16"] = speed["spscanner bfloat16"] / speed["transformers bfloat16"]
    rows |= {f"largest hidden difference, {name}": difference[name] for name in list(hidden)[1:]}
    rows["threads"] = torch.get_num_threads()
    agrees = difference["spscanner float32"] <= TOLERANCE
    fast = all(ratio[dtype] >= bound for dtype, bound in required.items())
    return rows, agrees and (fast or arguments.shape != "130m")


def _forwards(shape: str, device: torch.device) -> dict[str, Callable[[Tensor], Tensor]]:
    """The four kinds: token ids (1, tokens) to hidden states (1, tokens, d_model)."""
    import torch
    from transformers import Mamba2Model

    from spscanner_rag.checkpoint import load_model

    torch.manual_seed(0)
    forwards: dict[str, Callable[[Tensor], Tensor]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_random_weights(shape, Path(folder))
        for dtype in (torch.float32, torch.bfloat16):
            name = str(dtype).removeprefix("torch.")
            reference = Mamba2Model.from_pretrained(folder, dtype=dtype).to(device).eval()
            ours = load_model(Path(folder), device=device, dtype=dtype, require_head=False)
            forwards[f"transformers {name}"] = partial(_hidden, reference, use_cache=False)
            forwards[f"spscanner {name}"] = partial(_hidden_by_segments, ours)
    return forwards


def _hidden_by_segments(model: ScannerModel, input_ids: Tensor) -> Tensor:
    """Read as `Scanner` does: segment after segment, with the state carried."""
    import torch

    from spscanner_rag.mamba2.reader import keep_freed_memory
    from spscanner_rag.scan.devices import default_segment_tokens

    hidden, state = [], None
    keep_freed_memory()  # as the reader does; later runs in this process gain from it, too
    tokens = default_segment_tokens(input_ids.device.type, model.config)
    for segment in torch.split(input_ids, tokens, dim=1):
        values, state = model(segment, state)
        hidden.append(values)
    return torch.cat(hidden, dim=1)


def _hidden(model: Callable[..., Sequence[Tensor]], input_ids: Tensor, **options: bool) -> Tensor:
    return model(input_ids, **options)[0]
