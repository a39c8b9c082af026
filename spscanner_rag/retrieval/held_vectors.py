"""The vectors of the sentences of a corpus, each with the name of its encoder."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from spscanner_rag.retrieval.vector_arrays import (
    EncodedTexts,
    vectors_from_arrays,
    vectors_to_arrays,
)
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.units import Unit

if TYPE_CHECKING:  # these import torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors


class HeldVectors:
    """The vectors of the sentences of texts, by the keys of the texts.

    They belong to a corpus like its words, so the bound of what is kept in memory does
    not count them: a sentence takes 386 bytes with the bundled encoder.

    Parameters
    ----------
    encoded : EncodedTexts, optional
        The vectors, with the encoders that made them.
    """

    def __init__(self, encoded: EncodedTexts | None = None) -> None:
        self.of_text: dict[str, SentenceVectors] = {}
        self.digests: dict[str, str] = {}
        if encoded is not None:
            self.of_text = dict(encoded.vectors)
            self.digests = dict(encoded.digests)

    def __len__(self) -> int:
        return len(self.of_text)

    def __reduce__(self) -> tuple[type["HeldVectors"], tuple[object, ...]]:
        return HeldVectors, (self._encoded(),)

    def of_texts(self, text_keys: Collection[str]) -> "HeldVectors":
        """Return the vectors of some texts alone."""
        vectors = HeldVectors()
        for text_key in self.of_text:
            if text_key in text_keys:
                vectors.of_text[text_key] = self.of_text[text_key]
        for text_key in self.digests:
            if text_key in text_keys:
                vectors.digests[text_key] = self.digests[text_key]
        return vectors

    def get(self, text_key: str, meaning: "Meaning") -> "SentenceVectors | None":
        """Return the vectors of a text, if this encoder would make them."""
        vectors = self.of_text.get(text_key)
        if vectors is None or not meaning.would_make(vectors):
            return None
        return vectors

    def put(
        self,
        text_key: str,
        meaning: "Meaning",
        vectors: "SentenceVectors",
        units: Sequence[Unit],
    ) -> None:
        """Hold the vectors that an encoder made of the units of a text.

        Those of another encoder go.
        """
        if vectors.encoder not in {held.encoder for held in self.of_text.values()}:
            for held_key in list(self.of_text):
                if not meaning.would_make(self.of_text[held_key]):
                    self.of_text.pop(held_key)
                    self.digests.pop(held_key, None)
        if self.of_text.get(text_key) is not vectors:
            self.digests[text_key] = digest_of_units(units)
            self.of_text[text_key] = vectors

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays that `from_arrays` reads back."""
        return vectors_to_arrays(self._encoded())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "HeldVectors":
        """Restore vectors.

        ``ValueError`` for arrays that do not fit together.
        """
        return cls(vectors_from_arrays(arrays))

    def _encoded(self) -> EncodedTexts:
        # Copies: another thread may hold new vectors while these are written.
        return EncodedTexts(dict(self.of_text), dict(self.digests))


def digest_of_units(units: Sequence[Unit]) -> str:
    """Return the digest of a text's sentences, as an encoder reads them."""
    from spscanner_rag.encoder.sentence_vectors import digest_of

    return digest_of(fold_texts([unit.model_text for unit in units]))
