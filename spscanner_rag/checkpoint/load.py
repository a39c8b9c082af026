"""Load a checkpoint: its model, tokenizer and settings; each file is read once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack

import torch
from tokenizers import Tokenizer
from torch.overrides import TorchFunctionMode

from spscanner_rag.checkpoint.config import (
    HEAD_TENSORS,
    ScannerSettings,
    canonical_name,
    read_config,
)
from spscanner_rag.checkpoint.encoder_file import (
    EncoderFile,
    find_encoder,
    read_encoder,
)
from spscanner_rag.checkpoint.file_access import (
    CONFIG,
    ENCODER,
    SAFETENSORS,
    WORD_VECTORS,
    CheckpointError,
    Digests,
    HubOptions,
    current_files,
    faults_of,
    fingerprint,
    locate,
    read_json,
    read_word_vectors,
)
from spscanner_rag.checkpoint.tensor_files import (
    read_headers,
    read_tensors,
    verify_headers,
)
from spscanner_rag.checkpoint.tokenizer_file import (
    find_tokenizer,
    refuse_small_vocabulary,
)
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.escaping import first_line

PUBLISHED_VOCAB_SIZE: Final = 50277
PUBLISHED_WINDOW_TOKENS: Final = 120_000


class Layout(NamedTuple):
    """How the files of a kind of checkpoint are read.

    ``ValueError`` for another kind.
    """

    # from the parsed ``config.json``
    config: Callable[[Mapping[str, Any]], Mamba2Config] = read_config
    # from the stored name of a tensor to ours
    name: Callable[[str], str] = canonical_name


SCANNER: Final = Layout()


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
        """One SHA-256, in hexadecimal, of its current files; reads them all."""
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
    word_vectors = (
        read_word_vectors(files / WORD_VECTORS, digests.check)
        if settings.soft
        else None
    )
    # Weights first: their errors are the cheapest to find, and loading them registers
    # the hook for forks.
    model, has_head = _load_weights(
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
    return Meaning(
        chosen_encoder, settings.meaning, weighed=default, cross=cross
    ), encoder_file


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
    return _load_weights(
        folder, config, settings, digests, device, dtype, require_head
    )[0]


def new_model(
    config: Mamba2Config, settings: ScannerSettings, *, head: bool = True
) -> ScannerModel:
    """A model with initial weights.

    It has the parts of the lexical channel that the settings switch on.
    """
    return ScannerModel(
        config,
        match_embedding=settings.match,
        lexical_prior=settings.prior,
        surroundings=settings.surroundings,
        soft=settings.soft,
        head=head,
    )


def unloaded_model(
    config: Mamba2Config, settings: ScannerSettings, *, head: bool = True
) -> ScannerModel:
    """A model whose tensors have no values, so that nothing large is allocated."""
    with torch.device("meta"), _WithoutFirstValues():
        return new_model(config, settings, head=head)


def tensor_shapes(model: ScannerModel) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that a checkpoint of a model holds, by name."""
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def read_settings(
    folder: Path, layout: Layout = SCANNER
) -> tuple[Mamba2Config, ScannerSettings, bool, Digests]:
    """Read ``config.json``.

    Returns the model's shape, the settings, whether it is a published scanner, and the
    digests of its files.
    """
    path = folder / CONFIG
    with faults_of(path):
        raw = read_json(path)
        config = layout.config(raw)
        if "spscanner" in raw:
            settings = ScannerSettings.from_dict(raw["spscanner"])
            return config, settings, False, Digests(raw)
    if config.vocab_size == PUBLISHED_VOCAB_SIZE:
        return (
            config,
            ScannerSettings("reference", window_tokens=PUBLISHED_WINDOW_TOKENS),
            True,
            Digests(),
        )
    return config, ScannerSettings(), False, Digests()


def _load_weights(
    folder: Path,
    config: Mamba2Config,
    settings: ScannerSettings,
    digests: Digests,
    device: torch.device | str,
    dtype: torch.dtype,
    require_head: bool,
    layout: Layout = SCANNER,
) -> tuple[ScannerModel, bool]:
    """The model, and whether its head was in the files."""
    if not dtype.is_floating_point:
        raise CheckpointError(
            f"dtype is {dtype}; expected a floating-point one, as torch.float32"
        )
    headers = read_headers(folder, layout.name)
    has_head = any(name in headers for name in HEAD_TENSORS)
    if require_head and not has_head:
        raise CheckpointError(
            f"{folder}: a language model without {HEAD_TENSORS[0]}, which loads only"
            " for training; expected a scanner: train one with it as --base"
        )
    weight, bias = HEAD_TENSORS
    absent: dict[str, torch.Tensor] = {}
    if not has_head:  # distributed as in torch.nn.Linear, but the same every time
        bound = config.d_model**-0.5
        generator = torch.Generator().manual_seed(0)
        first = torch.empty(1, config.d_model).uniform_(
            -bound, bound, generator=generator
        )
        absent = {weight: first, bias: torch.zeros(1)}
    if (
        bias not in headers
        and weight in headers
        and headers[weight].stored_name != weight
    ):
        # the heads of transformers' classifiers have no bias
        absent = {bias: torch.zeros(1)}
    compute_in_forks()  # converting weights is already a computation
    # So that an absurd number of layers costs nothing: with one more than there are
    # tensors, one is missing.
    bounded = replace(config, n_layer=min(config.n_layer, len(headers) + 1))
    try:
        model = unloaded_model(bounded, settings)
    except (RuntimeError, OverflowError, TypeError) as error:  # sizes beyond 64 bits
        raise CheckpointError(
            f"{folder / CONFIG}: no model has such sizes ({first_line(error)});"
            " expected those of the weights"
        ) from None
    expected = {
        name: shape
        for name, shape in tensor_shapes(model).items()
        if name not in absent
    }
    verify_headers(headers, expected, folder)
    # now that no file is larger than its tensors
    for path in dict.fromkeys(
        [folder / SAFETENSORS, *(header.file for header in headers.values())]
    ):
        digests.check(path)
    tensors = dict(read_tensors(headers, device=device, dtype=dtype))
    model.load_state_dict(
        tensors | {name: tensor.to(device) for name, tensor in absent.items()},
        assign=True,
    )
    return model.eval(), has_head


class _WithoutFirstValues(TorchFunctionMode):
    """Skip initial weights, which the meta device lacks.

    torch would import 800 modules for them, which takes a second.
    """

    # without underscores
    _SAME_SHAPE: Final = frozenset({"normal", "exp", "expm1", "log", "neg", "add"})

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "").strip("_") in self._SAME_SHAPE:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
