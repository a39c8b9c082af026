"""A loaded checkpoint, whatever computes its model."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import ScannerSettings
from spscanner_rag.checkpoint.digests import fingerprint
from spscanner_rag.checkpoint.location import current_files
from spscanner_rag.encoder.bert_shape import BertShape
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.mamba2.sentence_scan_shape import ScansSentences
from spscanner_rag.mamba2.token_reader import TokenReader


@dataclass(kw_only=True)
class LoadedCheckpoint(ABC):
    """A loaded checkpoint, but for its model."""

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
    # estimates logits from the scores of sentences, if there is an encoder
    sentence_scan: ScansSentences | None = None

    @property
    @abstractmethod
    def token_reader(self) -> TokenReader:
        """What reads with its model."""

    @property
    @abstractmethod
    def encoder_shape(self) -> BertShape | None:
        """The sizes of its own encoder, if that is loaded."""

    @property
    def files(self) -> Path:
        """The folder with its files, within ``folder`` after an interrupted save."""
        return current_files(self.folder)

    def fingerprint(self) -> str:
        """One SHA-256, in hexadecimal, of its current files, which are all read."""
        return fingerprint(self.files)
