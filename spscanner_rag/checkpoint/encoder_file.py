"""The encoder of a checkpoint, in one file with its tokenizer.

Encoders in sentence-transformers' folders are read as well.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Unpack

import torch
from safetensors.torch import load
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.bounded_files import (
    LARGEST_TABLE,
    Check,
    read_bytes,
    read_json,
)
from spscanner_rag.checkpoint.digests import fingerprint
from spscanner_rag.checkpoint.errors import CheckpointError, faults_of
from spscanner_rag.checkpoint.file_names import CONFIG, SAFETENSORS, TOKENIZER
from spscanner_rag.checkpoint.hub import HubOptions, download_weights
from spscanner_rag.checkpoint.location import local_path
from spscanner_rag.checkpoint.tensor_files import (
    read_headers,
    read_tensors,
    refuse_absurd,
)
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer, tokenizer_of
from spscanner_rag.encoder.bert import (
    SCALE,
    WORD_EMBEDDINGS,
    Bert,
    BertShape,
    group_of,
    restored,
)
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.token_encoder import TokenEncoder, check_fit
from spscanner_rag.mamba2.sentence_scan import SentenceScan, SentenceScanShape

_POOLING: Final = "1_Pooling/config.json"
_PROMPTS: Final = "config_sentence_transformers.json"
_FILES: Final = (CONFIG, TOKENIZER, SAFETENSORS, _POOLING, _PROMPTS)
# begins the names of a cross-reader's tensors in an encoder's file
CROSS: Final = "cross."
# the same for a sentence scan's
SENTENCE_SCAN: Final = "sentence_scan."
HEAD: Final = "head"
_LARGEST_INT8: Final = 128
_LARGEST_LOG_SCALE: Final = 20.0  # of a cosine; its exponential is 5e8
_AGAIN: Final = "download it, or make it with `spscanner encoder`, again"


class EncoderFile(NamedTuple):
    """The content of an encoder's file."""

    shape: BertShape
    weights: dict[str, torch.Tensor]  # matrices may be in int8
    tokenizer: Tokenizer
    prefix: str = ""
    first_token: bool = False
    # the cross-reader's: see `cross_tensors`
    cross: dict[str, torch.Tensor] | None = None
    # the sentence scan's, whose sizes are in ``config.json``
    sentence_scan: dict[str, torch.Tensor] | None = None

    def loaded(
        self, digest: str, device: torch.device | str, dtype: torch.dtype
    ) -> TokenEncoder:
        """The encoder on a device, computing in float32 or bfloat16."""
        model = Bert(self.shape, restored(self.weights, device, dtype))
        return TokenEncoder(
            model,
            self.tokenizer,
            digest,
            prefix=self.prefix,
            first_token=self.first_token,
        )

    def loaded_sentence_scan(
        self, shape: SentenceScanShape, path: Path
    ) -> SentenceScan:
        """The sentence scan of this shape, on the CPU.

        `CheckpointError` names the path if its tensors are missing or of other shapes.
        """
        weights = self.sentence_scan or {}
        expected = {}
        for name, weight in SentenceScan(shape).state_dict().items():
            expected[name] = tuple(weight.shape)
        _verify(weights, expected, path, SENTENCE_SCAN)
        return SentenceScan.of(shape, {name: weights[name] for name in expected})

    def loaded_cross(
        self,
        device: torch.device | str,
        dtype: torch.dtype,
        words: torch.Tensor | None = None,
    ) -> CrossReader | None:
        """The cross-reader, if there is one.

        ``words`` are the encoder's word embeddings, if already loaded.
        """
        if self.cross is None:
            return None
        shared = {
            name: weight
            for name, weight in self.weights.items()
            if name.startswith(WORD_EMBEDDINGS)
        }
        shared = shared if words is None else {WORD_EMBEDDINGS: words}
        model = Bert(self.shape, restored(shared | self.cross, device, dtype))
        return CrossReader(
            model, self.tokenizer, self.cross[HEAD].to(device, torch.float32)
        )


def cross_tensors(shape: BertShape) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor of a cross-reader, by name."""
    shapes = {
        name: sizes
        for name, sizes in shape.tensors().items()
        if name != WORD_EMBEDDINGS
    }
    return shapes | {HEAD: (shape.hidden_size + 2,)}


def read_encoder(path: Path, check: Check | None = None) -> tuple[EncoderFile, str]:
    """Return what `write_encoder` wrote, and its digest.

    `CheckpointError` if it is missing or damaged.
    """
    content = read_bytes(path, LARGEST_TABLE, check)
    with faults_of(path, f"; {_AGAIN}"):
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        description = json.loads(content[8 : 8 + length]).get("__metadata__", {})
        config = json.loads(description.get("config", "null"))
        if not isinstance(config, dict):
            raise ValueError(f"its config is {config!r:.60}; expected an object")
        shape = BertShape.from_dict(config)
        tokenizer = tokenizer_of(description.get("tokenizer", "").encode(), path)
        check_fit(tokenizer, shape)
        first_token = bool(json.loads(description.get("first_token", "false")))
        cross = _taken_out(tensors, CROSS)
        sentence_scan = _taken_out(tensors, SENTENCE_SCAN)
        prefix = str(description.get("prefix", ""))
    _verify(tensors, shape.tensors(), path)
    if cross:
        _verify(cross, cross_tensors(shape), path)
        _refuse_large_scale(cross[HEAD], path)
    encoder = EncoderFile(
        shape,
        tensors,
        tokenizer,
        prefix,
        first_token,
        cross or None,
        sentence_scan or None,
    )
    return encoder, hashlib.sha256(content).hexdigest()


def find_encoder(
    name: str | Path, **hub: Unpack[HubOptions]
) -> tuple[EncoderFile, str]:
    """Read an encoder from our own file, or from a folder or Hub id.

    These hold a BERT-like sentence-transformers model.
    """
    path = local_path(name, "an encoder or its file")
    if path is not None and not path.is_dir():
        return read_encoder(path)
    if path is None:
        hub.pop("revision", None)  # that is the checkpoint's
        path = download_weights(str(name), _FILES, **hub)
    with faults_of(
        path / CONFIG,
        "; pass another kind of model as an object of LangChain or LlamaIndex",
    ):
        shape = BertShape.from_dict(read_json(path / CONFIG))
    tokenizer = read_tokenizer(path / TOKENIZER)
    with faults_of(path / TOKENIZER):
        check_fit(tokenizer, shape)
    headers = read_headers(path, lambda stored: stored.removeprefix("bert."))
    wanted = {
        stored: header
        for stored, header in headers.items()
        if stored in shape.tensors()
    }
    pooling, prompts = (
        read_json(path / n) if (path / n).exists() else {} for n in (_POOLING, _PROMPTS)
    )
    named = prompts.get("prompts")
    prefix = named.get("query") if isinstance(named, dict) else None
    encoder = EncoderFile(
        shape,
        dict(read_tensors(wanted, device="cpu", dtype=torch.float32)),
        tokenizer,
        prefix if isinstance(prefix, str) and len(prefix) <= 1000 else "",
        pooling.get("pooling_mode_cls_token")
        is True,  # else sentence-transformers takes the mean of all
    )
    _verify(encoder.weights, shape.tensors(), path)
    return encoder, fingerprint(path)


def _taken_out(
    tensors: dict[str, torch.Tensor], prefix: str
) -> dict[str, torch.Tensor]:
    """The tensors whose names begin with a prefix, which are taken out."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def _verify(
    weights: Mapping[str, torch.Tensor],
    expected: Mapping[str, tuple[int, ...]],
    path: Path,
    prefix: str = "",
) -> None:
    """Refuse weights that are missing, of another shape or kind, or not finite."""
    for name, shape in expected.items():
        weight = weights.get(name)
        where = f"{path}: tensor {prefix}{name}"
        if weight is None or tuple(weight.shape) != shape:
            got = "is missing" if weight is None else f"has shape {list(weight.shape)}"
            raise CheckpointError(
                f"{where} {got}; expected shape {list(shape)}: {_AGAIN}"
            )
        checked = weight
        if weight.dtype == torch.int8:
            scale = weights.get(name + SCALE)
            sizes = (
                (shape[0], shape[1] // group_of(shape[1])) if len(shape) == 2 else None
            )
            if scale is None or tuple(scale.shape) != sizes:
                raise CheckpointError(
                    f"{where} is int8 without scales of shape {sizes}: {_AGAIN}"
                )
            checked = scale
            if scale.is_floating_point():
                # the size of the largest weight that may be restored
                checked = scale.float() * _LARGEST_INT8
        if not checked.is_floating_point():
            raise CheckpointError(
                f"{where} is {checked.dtype}; expected floating-point numbers: {_AGAIN}"
            )
        refuse_absurd(checked.float(), where, torch.float32)


def _refuse_large_scale(head: torch.Tensor, path: Path) -> None:
    """Refuse a head whose logits would not be finite."""
    log_scale = float(head[-2])
    if log_scale > _LARGEST_LOG_SCALE:
        raise CheckpointError(
            f"{path}: tensor {CROSS}{HEAD} has {log_scale:.3g} as the logarithm of a"
            f" scale; expected at most {_LARGEST_LOG_SCALE:.0f}: {_AGAIN}"
        )
