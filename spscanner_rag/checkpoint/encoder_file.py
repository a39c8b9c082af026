"""The encoder of a checkpoint, in one file with its tokenizer.

Encoders in sentence-transformers' folders are read as well.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack

import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.bounded_files import Check, read_json
from spscanner_rag.checkpoint.digests import fingerprint
from spscanner_rag.checkpoint.encoder_content import (
    HEAD,
    SENTENCE_SCAN,
    read_content,
    verify_arrays,
)
from spscanner_rag.checkpoint.errors import faults_of
from spscanner_rag.checkpoint.file_names import CONFIG, SAFETENSORS, TOKENIZER
from spscanner_rag.checkpoint.hub import HubOptions, download_weights
from spscanner_rag.checkpoint.location import local_path
from spscanner_rag.checkpoint.tensor_files import read_headers, read_tensors
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.encoder.bert import Bert, restored
from spscanner_rag.encoder.bert_shape import WORD_EMBEDDINGS, BertShape
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.encoder.window_encoder import check_fit
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape

_POOLING: Final = "1_Pooling/config.json"
_PROMPTS: Final = "config_sentence_transformers.json"
_FILES: Final = (CONFIG, TOKENIZER, SAFETENSORS, _POOLING, _PROMPTS)


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


def read_encoder(path: Path, check: Check | None = None) -> tuple[EncoderFile, str]:
    """Return what `write_encoder` wrote, and its digest.

    `CheckpointError` if it is missing or damaged.
    """
    content, digest = read_content(path, check)
    encoder = EncoderFile(
        content.shape,
        _tensors(content.weights),
        content.tokenizer,
        content.prefix,
        content.first_token,
        None if content.cross is None else _tensors(content.cross),
        None if content.sentence_scan is None else _tensors(content.sentence_scan),
    )
    return encoder, digest


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


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    """Arrays as tensors, which share their memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _verify(
    weights: Mapping[str, torch.Tensor],
    expected: Mapping[str, tuple[int, ...]],
    path: Path,
    prefix: str = "",
) -> None:
    """Refuse weights that are missing, of another shape or kind, or not finite."""
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    verify_arrays(arrays, expected, path, prefix)
