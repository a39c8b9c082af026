"""Mamba-2 as a pointwise reranker ("State Space Models are Strong Text Rerankers", Xu et al.)."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.baselines.pointwise import Pair, Pointwise
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.checkpoint import locate
from spscanner_rag.checkpoint.config_file import (
    CONFIG,
    HEAD_TENSORS,
    PUBLISHED_VOCAB_SIZE,
    canonical_name,
    read_config,
    tensor_shapes,
)
from spscanner_rag.checkpoint.tensor_files import (
    CheckpointError,
    TensorHeader,
    read_headers,
    read_json,
    read_tensors,
    verify_headers,
)
from spscanner_rag.checkpoint.tokenizer_file import find_tokenizer, refuse_small_vocabulary
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence, read_logits
from spscanner_rag.scan.devices import choose, default_segment_tokens
from spscanner_rag.scan.pipeline import in_runs
from spscanner_rag.scorers import Cancelled, stop_if
from spscanner_rag.text.tokenize_in_pieces import tokenize_in_pieces
from spscanner_rag.text.units import Segmenter

TEMPLATE: Final = "document: {document}; query: {query};"
"""What is read of a pair; the end-of-text token follows, and the logit sits on it."""

_END_TOKENS: Final = ("<|endoftext|>", "</s>", "<|im_end|>")
_PIECE_CHARACTERS: Final = 32_768


class MambaReranker(Pointwise):
    """Reads "document: {unit}; query: {query};" and an end-of-text token, whose hidden state gives the logit.

    Memory does not grow with the length of a unit: whole documents fit, and nothing is truncated.

    Parameters
    ----------
    model : str or Path
        A local folder or a Hub id, in mamba-ssm's or transformers' layout of a Mamba-2 model. The head is
        ``binary_head.weight`` and ``.bias`` (our layout), or ``score.weight``, with or without ``score.bias``
        (transformers' sequence classifiers, with the backbone under ``backbone.`` or ``model.``).
    unit : str or Segmenter, default "sentence"
        As for `Baseline`.
    device, dtype : default "auto"
        As for `Scanner`.
    segment_tokens : int, optional
        Tokens per forward pass. Default: by device.
    end_token : str, optional
        Default: "<|endoftext|>", else "</s>" or "<|im_end|>", whichever the tokenizer has.
    tokenizer, revision, token, cache_dir, local_files_only
        As for `Scanner.from_pretrained`.

    Raises
    ------
    CheckpointError
        If the checkpoint is not there or not sound, or has no head or one with several labels.
    ValueError
        For an argument that is out of range, or a tokenizer without the end token.
    """

    def __init__(
        self,
        model: str | Path,
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "auto",
        segment_tokens: int | None = None,
        end_token: str | None = None,
        tokenizer: Tokenizer | str | Path | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
    ) -> None:
        super().__init__(unit)
        if segment_tokens is not None and (type(segment_tokens) is not int or segment_tokens < 1):
            raise ValueError(f"segment_tokens is {segment_tokens!r}; expected a whole number of at least 1")
        choice = choose(device, dtype)
        self._name = f"mamba:{model}"
        hub_options: dict[str, Any] = {
            "token": token,
            "cache_dir": cache_dir,
            "local_files_only": local_files_only,
        }
        folder = locate(model, revision=revision, **hub_options)
        config = _read_config(folder)
        self._tokenizer = find_tokenizer(
            tokenizer, folder, config.vocab_size == PUBLISHED_VOCAB_SIZE, hub_options
        )
        refuse_small_vocabulary(config, self._tokenizer, folder / CONFIG)
        self._end = _end_token(self._tokenizer, end_token)
        self.segment_tokens = segment_tokens or default_segment_tokens(choice.device.type, config)
        self._model = _load_model(folder, config, choice.device, choice.dtype)

    @property
    def name(self) -> str:
        """Its name in tables: "mamba:" and the model."""
        return self._name

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this model's tokenizer, without special tokens."""
        return len(self._ids(text))

    def score_pairs(self, pairs: Sequence[Pair], cancelled: Cancelled) -> NDArray[np.float32]:
        """Logits of the last tokens: (pairs,)."""

        def after_step(_: int) -> None:
            stop_if(cancelled)

        runs = in_runs(self._sequences(pairs, cancelled), lambda s: len(s.input_ids), self.segment_tokens)
        read = (read_logits(self._model, run, self.segment_tokens, after_step) for run in runs)
        return np.concatenate(list(chain.from_iterable(read)))

    def _sequences(self, pairs: Sequence[Pair], cancelled: Cancelled) -> Iterator[TokenSequence]:
        for query, document in pairs:
            stop_if(cancelled)
            ids = self._ids(TEMPLATE.format(document=document, query=query))
            yield TokenSequence(np.append(ids, np.int32(self._end)), np.array([len(ids)]))

    def _ids(self, text: str) -> NDArray[np.int32]:
        pieces = tokenize_in_pieces(self._tokenizer, text, _PIECE_CHARACTERS)
        return np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in pieces)])


def _read_config(folder: Path) -> Mamba2Config:
    try:
        return read_config(read_json(folder / CONFIG))
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from None


def _end_token(tokenizer: Tokenizer, asked: str | None) -> int:
    names = _END_TOKENS if asked is None else (asked,)
    for name in names:
        number = tokenizer.token_to_id(name)
        if number is not None:
            return number
    raise ValueError(
        f"the tokenizer has no token {' or '.join(names)}; pass end_token=, the one that the model was"
        " trained with at the end of its input"
    )


def _load_model(folder: Path, config: Mamba2Config, device: torch.device, dtype: torch.dtype) -> ScannerModel:
    headers = read_headers(folder, _our_name)
    _require_one_label(headers, folder)
    if "match_embedding.weight" in headers or "lexical_prior.weight" in headers:
        raise CheckpointError(
            f"{folder}: reads with a lexical channel, so it is a scanner; expected a reranker, which has none"
        )
    weight, bias = HEAD_TENSORS
    shapes = [(name, shape) for name, shape in tensor_shapes(config) if name != bias or bias in headers]
    verify_headers(headers, shapes, folder)
    tensors = dict(read_tensors(headers, device=device, dtype=dtype))
    tensors.setdefault(bias, tensors[weight].new_zeros(1))
    with torch.device("meta"):
        model = ScannerModel(config)
    model.load_state_dict(tensors, assign=True)
    return model.eval()


def _our_name(name: str) -> str:
    """Our name of a tensor of a sequence classifier."""
    if name.startswith("score."):
        return name.replace("score.", "binary_head.", 1)
    return canonical_name(name.removeprefix("model."))


def _require_one_label(headers: dict[str, TensorHeader], folder: Path) -> None:
    head = headers.get(HEAD_TENSORS[0])
    if head is None:
        raise CheckpointError(
            f"{folder}: neither {HEAD_TENSORS[0]} nor score.weight is there; expected a trained reranker"
        )
    if len(head.shape) == 2 and head.shape[0] != 1:
        raise CheckpointError(
            f"{head.file}: tensor {head.stored_name} is a head with {head.shape[0]} labels; expected one"
            " relevance score"
        )
