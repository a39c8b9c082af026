"""What is read of a checkpoint before its weights, whatever computes them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import ScannerSettings
from spscanner_rag.checkpoint.digests import Digests
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import CONFIG, WORD_VECTORS
from spscanner_rag.checkpoint.hub import HubOptions
from spscanner_rag.checkpoint.layout import Layout
from spscanner_rag.checkpoint.location import current_files, locate
from spscanner_rag.checkpoint.settings_file import read_settings
from spscanner_rag.checkpoint.tokenizer_file import (
    find_tokenizer,
    refuse_small_vocabulary,
)
from spscanner_rag.checkpoint.word_vectors_file import read_word_vectors
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_by_language import LoadEncoder, MeaningByLanguage
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.config import Mamba2Config


class OpenedFolder(NamedTuple):
    """A checkpoint without its weights."""

    source: str  # as the caller named it; "default" for the bundled one
    folder: Path  # where it was found
    files: Path  # the folder with its files
    config: Mamba2Config
    settings: ScannerSettings
    published: bool
    digests: Digests
    tokenizer: Tokenizer
    word_vectors: WordVectors | None


def open_folder(
    name: str | Path | None,
    tokenizer: Tokenizer | str | Path | None,
    layout: Layout,
    hub: HubOptions,
) -> OpenedFolder:
    """Find a checkpoint for `load_checkpoint`, and read all but its weights."""
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
    return OpenedFolder(
        source="default" if name is None else str(name),
        folder=folder,
        files=files,
        config=config,
        settings=settings,
        published=published,
        digests=digests,
        tokenizer=loaded_tokenizer,
        word_vectors=word_vectors,
    )


class EncoderParts(ABC):
    """The parts of a checkpoint's own encoder file, and other encoders."""

    @abstractmethod
    def own(self) -> SentenceEncoder:
        """Return the checkpoint's own encoder."""

    @abstractmethod
    def found(self, name: str | Path) -> SentenceEncoder:
        """Return the encoder of a file, a folder or a Hub id."""

    @abstractmethod
    def cross(self) -> SentenceCrossReader | None:
        """Return the cross-reader, if there is one."""

    @abstractmethod
    def multilingual(self) -> LoadEncoder | None:
        """Return what loads the encoder of other languages, if it is installed."""


Parts = TypeVar("Parts", bound=EncoderParts)


def meaning_of(
    opened: OpenedFolder, encoder: object, read_parts: Callable[[], Parts]
) -> tuple[Meaning | None, Parts | None]:
    """Return the chosen encoder with its weights, and the checkpoint's own parts.

    Parameters
    ----------
    opened : OpenedFolder
        The checkpoint.
    encoder : object
        As for `load_checkpoint`.
    read_parts : callable
        Reads the checkpoint's own encoder file.
    """
    settings = opened.settings
    default = isinstance(encoder, str) and encoder == "default"
    if encoder is None or (settings.meaning is None and default):
        return None, None
    if settings.meaning is None:
        raise CheckpointError(
            f"{opened.files}: got encoder {encoder!r:.80} for a checkpoint that was"
            " made without one and has no weights for its vectors; pass encoder=None,"
            " or use the bundled checkpoint"
        )
    parts = read_parts()
    chosen_encoder: SentenceEncoder
    if default:
        chosen_encoder = parts.own()
    elif isinstance(encoder, str | Path):
        chosen_encoder = parts.found(encoder)
    else:
        chosen_encoder = TextEncoder(encoder)
    cross = parts.cross()
    if default:
        meaning: Meaning = MeaningByLanguage(
            chosen_encoder,
            settings.meaning,
            cross=cross,
            load_multilingual=parts.multilingual(),
        )
    else:
        meaning = Meaning(chosen_encoder, settings.meaning, weighed=False, cross=cross)
    return meaning, parts
