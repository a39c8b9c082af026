"""Speed of reading documents, its share of the machine's limit, and the speed of other programs.

There are three parts. `readings`: our backends and transformers on the same random
weights. `questions`: complete scanners with several questions about a document, and
with many short documents. `embedding`: a scan compared with all-MiniLM-L6-v2 on the
sentences of the same text. The complete scanner of size "default" is the bundled one.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spscanner_lab.benchmarks.long_documents import allow_no_more_than_is_free
from spscanner_lab.benchmarks.report import (
    Commands,
    Row,
    median_seconds,
    seconds_of,
    too_long,
)
from spscanner_lab.benchmarks.texts import (
    QUESTION,
    QUESTIONS,
    short_texts,
    text_of_tokens,
)

if TYPE_CHECKING:
    import torch

    from spscanner_rag import Scanner
    from spscanner_rag.mamba2.config import Mamba2Config
    from spscanner_rag.mamba2.model import ScannerModel

SHAPES = {
    "default": {
        "hidden_size": 256,
        "num_hidden_layers": 7,
        "vocab_size": 16384,
        "state_size": 64,
    },
    "130m": {
        "hidden_size": 768,
        "num_hidden_layers": 24,
        "vocab_size": 50288,
        "state_size": 128,
    },
    "1.3b": {
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "vocab_size": 50288,
        "state_size": 128,
    },
    "tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "vocab_size": 16384,
        "state_size": 16,
    },
}
"""Keys of transformers' configuration; "default" is the bundled checkpoint's.

All sizes can read its tokens.
"""

PARTS = ("readings", "questions", "embedding")
OURS = ("mamba-ssm", "numba", "torch")
KINDS = (*OURS, "plain mamba-ssm", "transformers")
TOKENS_PER_UNIT = 25

_WIDTH = {"cuda": 8192, "cpu": 2048}  # rows and columns of the large product
_COPY_BYTES = {"cuda": 2**31, "cpu": 2**28}
_WARM_UP = {
    "cuda": 10**9,
    "cpu": 1024,
}  # tokens; on CUDA all, to tune kernels and take memory once
_NO_MEMORY = "out of memory"

Forward = Callable[["torch.Tensor"], object]
Program = Callable[[float], object]
"""Reads a share of a text: first a small share, to warm up and to estimate the time
for the whole text."""


class NotMeasuredError(Exception):
    """A measurement is not possible here; the message says why."""


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `speed`."""
    command = commands.add_parser(
        "speed", help="speed, memory, share of the machine's limit; other programs"
    )
    add = command.add_argument
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add(
        "--dtype",
        nargs="+",
        choices=["float32", "bfloat16"],
        help="default: native, on CPU also float32",
    )
    add("--sizes", nargs="+", choices=sorted(SHAPES), default=["default", "130m"])
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=["torch", "transformers"],
        help="programs that read",
    )
    add(
        "--tokens",
        nargs="+",
        type=int,
        default=[1000, 10_000],
        help="document lengths to read",
    )
    add(
        "--questions",
        nargs="+",
        type=int,
        default=[1, 4, 16],
        help="questions about one document",
    )
    add("--question-tokens", type=int, default=10_000, help="length of that document")
    add(
        "--short-documents",
        type=int,
        default=256,
        help="number of short documents to scan at once",
    )
    add("--short-tokens", type=int, default=400, help="length of each")
    add(
        "--embedded-tokens",
        type=int,
        default=100_000,
        help="length of the text to embed and to scan",
    )
    add(
        "--repeats", type=int, default=3, help="measurements of each; the median counts"
    )
    add(
        "--longest",
        type=float,
        default=120,
        help="leave out rows that would take more seconds",
    )
    add(
        "--budget",
        type=float,
        default=math.inf,
        help="start no row after this many seconds",
    )
    command.set_defaults(measure=measure_speed)
    return [command]


def measure_speed(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Rows of all parts for every size; there are no bounds."""
    import torch

    arguments.end = time.monotonic() + arguments.budget
    device, dtypes = (
        torch.device(arguments.device),
        arguments.dtype or _default_dtypes(arguments.device),
    )
    allow_no_more_than_is_free()
    rows: dict[str, object] = {
        "threads": torch.get_num_threads(),
        "GB/s of a large copy": copy_rate(device) / 1e9,
    }
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_random_weights(size, Path(folder))
            found: dict[str, Row] = {}
            if "readings" in arguments.parts:
                for dtype in dtypes:
                    for kind in arguments.kinds:
                        found |= _readings(kind, Path(folder), device, dtype, arguments)
            if set(arguments.parts) - {"readings"}:
                found |= _scanner_rows(size, Path(folder), device, dtypes[0], arguments)
            rows |= {f"{size}, {name}": row for name, row in found.items()}
    return rows, True


def _default_dtypes(device: str) -> list[str]:
    from spscanner_rag.scan.devices import choose

    native = str(choose(device).dtype).removeprefix("torch.")
    return list(dict.fromkeys([native, "float32"])) if device == "cpu" else [native]


def write_random_weights(shape: str, folder: Path) -> None:
    """Write a checkpoint with random weights, the same in every run, in transformers' layout."""
    import torch
    from transformers import Mamba2Config, Mamba2Model

    torch.manual_seed(0)
    sizes = SHAPES[shape]
    heads = {"num_heads": 2 * sizes["hidden_size"] // 64, "head_dim": 64, "n_groups": 1}
    Mamba2Model(Mamba2Config(**sizes, **heads, expand=2)).save_pretrained(folder)


def _readings(
    kind: str, folder: Path, device: torch.device, dtype: str, given: argparse.Namespace
) -> dict[str, Row]:
    """Rows of one program for each document length, from the shortest to the longest."""
    import torch

    from spscanner_rag.checkpoint.config import read_config
    from spscanner_rag.checkpoint.file_access import read_json

    config = read_config(read_json(folder / "config.json"))
    rows: dict[str, Row] = {}
    reason, rate = "", math.inf
    with torch.inference_mode():
        try:
            forward = _forward(kind, folder, device, getattr(torch, dtype))
        except NotMeasuredError as error:
            reason = f"not measured: {error}"
        for tokens in sorted(given.tokens):
            if not reason and time.monotonic() > given.end:
                reason = "not measured: no time left"
            if not reason and tokens / rate > given.longest:
                reason = too_long(tokens / rate)
            try:
                row = reason or _reading_row(
                    forward, config, tokens, device, getattr(torch, dtype), given
                )
            except NotMeasuredError as error:
                row = reason = f"not measured: {error}"
            rows[f"{dtype}, {kind}, {tokens:,} tokens"] = row
            if isinstance(row, dict):
                rate = row["tokens/s"]
            elif row == _NO_MEMORY:
                reason = _NO_MEMORY
    return rows


def _reading_row(
    forward: Forward,
    config: Mamba2Config,
    tokens: int,
    device: torch.device,
    dtype: torch.dtype,
    given: argparse.Namespace,
) -> Row:
    """Median time, tokens per second, shares of the machine's limit, and on CUDA the peak allocated memory."""
    import torch

    input_ids = torch.randint(config.vocab_size, (tokens,))
    rate, copied = product_rate(device, dtype), copy_rate(device)
    try:
        warm_up = input_ids[: _WARM_UP[device.type]]
        expected = seconds_of(partial(forward, warm_up), device) * tokens / len(warm_up)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        elif expected > given.longest:
            return too_long(expected)
        seconds = median_seconds(
            {"": partial(forward, input_ids)}, given.repeats, device
        )[""]
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error):
            return _NO_MEMORY
        raise
    rate = (
        rate + product_rate(device, dtype)
    ) / 2  # it changes when others use the machine
    projections, products, moved = least_work(config, tokens, dtype, device.type)
    row = {
        "ms": 1e3 * seconds,
        "tokens/s": tokens / seconds,
        "share of the limit": max(products / rate, moved / copied) / seconds,
        "share, projections only": projections / rate / seconds,
        "product GFLOP/s": rate / 1e9,
    }
    return row | (
        {"peak MB": torch.cuda.max_memory_allocated() / 1e6}
        if device.type == "cuda"
        else {}
    )


def least_work(
    config: Mamba2Config, tokens: int, dtype: torch.dtype, device: str
) -> tuple[float, float, float]:
    """Operations of the projections and of all products, and bytes moved, that any program needs for a document.

    Memory traffic: activations with every step fused, a float32 residual, weights once
    per segment. The machine's limit is the longer of two times: all products at the
    rate of a large product, all traffic at that of a large copy.
    """
    from spscanner_rag.scan.devices import default_segment_tokens

    itemsize = dtype.itemsize
    segment_tokens = min(tokens, default_segment_tokens(device, config))
    products = scan_products(config, tokens, tokens // TOKENS_PER_UNIT)
    matrices = config.d_model * (config.d_in_proj + config.d_inner)
    numbers = (
        4 * config.d_model
        + config.d_in_proj
        + 3 * config.conv_dim
        + config.nheads
        + 5 * config.d_inner
    )
    moved = config.n_layer * (
        8.0 * config.d_model + itemsize * (numbers + matrices / segment_tokens)
    )
    return 2.0 * tokens * config.n_layer * matrices, products, tokens * moved


def scan_products(config: Mamba2Config, tokens: int, units: int) -> float:
    """Operations of a scan's products.

    A multiply-add counts as two, and state space blocks are full squares.

    The last layer's output projection is computed only for the ends of units.
    """
    from spscanner_rag.mamba2.ssd import CHUNK_TOKENS

    d_inner, d_state = config.d_inner, config.d_state
    into = config.d_model * config.d_in_proj + config.d_conv * config.conv_dim
    block = CHUNK_TOKENS * (config.ngroups * d_state + d_inner)  # C . B, and mixing @ x
    state = (
        2 * d_inner * d_state
    )  # what the block adds to the state, and the state to the block
    out = d_inner * config.d_model
    mixing = config.n_layer * (into + block + state)
    return 2.0 * (
        tokens * (mixing + (config.n_layer - 1) * out) + units * (out + config.d_model)
    )


def product_rate(device: torch.device, dtype: torch.dtype) -> float:
    """Operations per second of a large matrix product."""
    import torch

    width = _WIDTH[device.type]
    left, right = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
    return 2.0 * width**3 / median_seconds({"": lambda: left @ right}, 5, device)[""]


def copy_rate(device: torch.device) -> float:
    """Bytes per second, read and written, of a large copy."""
    import torch

    source = torch.ones(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return (
        2.0
        * source.numel()
        / median_seconds({"": lambda: target.copy_(source)}, 5, device)[""]
    )


def _forward(
    kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> Forward:
    """Return a function that reads ids (tokens,) with the weights in a folder.

    Raises `NotMeasuredError`.
    """
    if kind in OURS:
        return partial(_by_segments, _our_model(kind, folder, device, dtype))
    if kind == "plain mamba-ssm":
        return _plain(folder, device, dtype)
    from transformers import Mamba2Model

    model = Mamba2Model.from_pretrained(folder, dtype=dtype).to(device).eval()
    return lambda ids: model(ids[None].to(device), use_cache=False)[0].sum().item()


def _plain(folder: Path, device: torch.device, dtype: torch.dtype) -> Forward:
    """mamba-ssm's own model, which reads a document in one piece, with other weights of the same shapes."""
    from spscanner_rag.checkpoint.config import read_config
    from spscanner_rag.checkpoint.file_access import read_json
    from spscanner_rag.mamba2.kernels.triton.kernels import import_modules

    sys.modules.setdefault(
        "selective_scan_cuda", ModuleType("selective_scan_cuda")
    )  # Mamba-1's, unused here
    try:
        _kernels("mamba-ssm", device)
        models = import_modules(["mamba_ssm.models.mixer_seq_simple"])
    except ImportError as error:
        raise NotMeasuredError(str(error)) from error
    own = read_config(read_json(folder / "config.json"))
    layer: dict[str, object] = {
        "layer": "Mamba2",
        "d_state": own.d_state,
        "headdim": own.headdim,
    }
    layer["use_mem_eff_path"] = (
        importlib.util.find_spec("causal_conv1d") is not None
    )  # this path needs it
    fused = {"rms_norm": True, "fused_add_norm": True, "residual_in_fp32": True}
    model = models["mamba_ssm.models.mixer_seq_simple"].MixerModel(
        own.d_model,
        own.n_layer,
        0,
        own.vocab_size,
        layer,
        **fused,
        device=device,
        dtype=dtype,
    )

    def forward(ids: torch.Tensor) -> object:
        if len(ids) * own.d_in_proj >= 2**31:
            raise NotMeasuredError("offsets of this many tokens at once exceed 32 bits")
        return model(ids[None].to(device)).sum().item()

    return forward


def _our_model(
    kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> ScannerModel:
    from spscanner_rag.checkpoint import load_model

    model = load_model(folder, device=device, dtype=dtype, require_head=False)
    model.use_kernels(_kernels(kind, device))
    return model


def _kernels(kind: str, device: torch.device) -> Any:  # noqa: ANN401 - the package's protocol
    from spscanner_rag.mamba2.backends import choose_backend

    try:
        return choose_backend(kind, device).kernels
    except (ImportError, ValueError) as error:
        raise NotMeasuredError(str(error)) from error


def _by_segments(model: ScannerModel, input_ids: torch.Tensor) -> object:
    """Read as `Scanner` does, with a logit for every unit."""
    import numpy as np

    from spscanner_rag.mamba2.reader import TokenSequence, read_logits
    from spscanner_rag.scan.devices import default_segment_tokens

    ends = np.arange(TOKENS_PER_UNIT - 1, len(input_ids), TOKENS_PER_UNIT)
    sequence = TokenSequence(input_ids.numpy().astype(np.int32), ends)
    return read_logits(
        model, [sequence], default_segment_tokens(model.device.type, model.config)
    )


def _scanner_rows(
    size: str, folder: Path, device: torch.device, dtype: str, given: argparse.Namespace
) -> dict[str, Row]:
    """Rows of a complete scanner, with the first of our backends that runs here."""
    import torch

    reason = "no time left"
    for kind in [kind for kind in given.kinds if kind in OURS] or OURS:
        if time.monotonic() > given.end:
            break
        try:
            scanner = _scanner(size, kind, folder, device, getattr(torch, dtype))
        except NotMeasuredError as error:
            reason = str(error)
            continue
        rows = _question_rows(scanner, given) if "questions" in given.parts else {}
        return rows | (
            _embedding_rows(scanner, given) if "embedding" in given.parts else {}
        )
    return {"whole scanner": f"not measured: {reason}"}


def _scanner(
    size: str, kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> Scanner:
    """The bundled scanner for "default", else one with random weights from a folder and the same tokenizer."""
    from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, load_checkpoint
    from spscanner_rag.scanner import Scanner

    bundled = load_checkpoint(device=device, dtype=dtype)
    if size == "default":
        bundled.model.use_kernels(_kernels(kind, device))
        return Scanner(bundled)
    model = _our_model(kind, folder, device, dtype)
    return Scanner(
        Checkpoint(
            model, ScannerSettings(), bundled.tokenizer, size, folder, published=False
        )
    )


def _question_rows(scanner: Scanner, given: argparse.Namespace) -> dict[str, Row]:
    """Several questions about one document, and many short documents compared with one that is as long as all."""

    def scan(questions: int, texts: list[str], share: float) -> object:
        parts = [text[: round(len(text) * share)] for text in texts]
        return scanner.scan_many(
            [
                (asked, part)
                for part in parts
                for asked in islice(cycle(QUESTIONS), questions)
            ]
        )

    text = text_of_tokens(given.question_tokens)
    programs: dict[str, Program] = {
        f"{number} question{'s' * (number > 1)} on {given.question_tokens:,} tokens": (
            partial(scan, number, [text])
        )
        for number in (1, *given.questions)
    }
    rows = _timed(scanner, programs, given)
    texts = short_texts(given.short_documents, given.short_tokens)
    programs = {
        "one document as long as the next": partial(scan, 1, ["".join(texts)]),
        f"{given.short_documents:,} documents of {given.short_tokens:,} tokens": (
            partial(scan, 1, texts)
        ),
    }
    return rows | _timed(scanner, programs, given)


def _embedding_rows(scanner: Scanner, given: argparse.Namespace) -> dict[str, Row]:
    """A scan, and all-MiniLM-L6-v2 on the sentences, both timed from the plain text."""
    from spscanner_rag.baselines.dense import MINILM, encoder_of
    from spscanner_rag.encoder.sentences import embed_checked
    from spscanner_rag.text.segmentation import SentenceSegmenter

    text, kind = text_of_tokens(given.embedded_tokens), scanner.device.type
    try:
        encoder = encoder_of(
            MINILM, device=kind, batch_size=256 if kind == "cuda" else 32
        )
    except (ImportError, ValueError) as error:
        return {"embedding": f"not measured: {error}"}
    if kind == "cuda":
        encoder.model.to(scanner.dtype)  # on a CPU it stays in float32

    def embed(share: float) -> object:
        part = text[: round(len(text) * share)]
        units = SentenceSegmenter().segment(part)
        return embed_checked(
            encoder.passages, [part[unit.start : unit.end] for unit in units]
        )

    def scan(share: float) -> object:
        return scanner.scan(QUESTION, text[: round(len(text) * share)])

    programs: dict[str, Program] = {
        f"{given.embedded_tokens:,} tokens, scan": scan,
        f"{given.embedded_tokens:,} tokens, all-MiniLM-L6-v2": embed,
    }
    return _timed(scanner, programs, given)


def _timed(
    scanner: Scanner, programs: Mapping[str, Program], given: argparse.Namespace
) -> dict[str, Row]:
    """Milliseconds of each program, and its time as a multiple of the first program's."""
    expected = {
        name: 20 * seconds_of(partial(run, 0.05), scanner.device)
        for name, run in programs.items()
    }
    runs = {
        name: partial(run, 1.0)
        for name, run in programs.items()
        if expected[name] <= given.longest
    }
    seconds = median_seconds(runs, given.repeats, scanner.device)
    first = seconds.get(next(iter(programs)), math.nan)
    return {
        name: (
            {"ms": 1e3 * seconds[name], "times the first": seconds[name] / first}
            if name in seconds
            else too_long(expected[name])
        )
        for name in programs
    }
