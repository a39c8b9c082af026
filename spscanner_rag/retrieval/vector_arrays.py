"""The sentence vectors of texts as arrays for a file, and back."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # it imports torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors

VECTOR_ARRAY_PREFIX = "vector_"
_ROWS = "vector_rows"
_SCALES = "vector_scales"
_COUNTS = "vector_counts"
_WIDTHS = "vector_widths"
_KEYS = "vector_keys"
_DIGESTS = "vector_digests"
_DTYPES = {_ROWS: np.int8, _SCALES: np.float16, _COUNTS: np.int64}


class EncodedTexts(NamedTuple):
    """The vectors of the sentences of some texts.

    Parameters
    ----------
    vectors : mapping
        Key of a text → vectors of its sentences, with their encoder's digest.
    digests : mapping
        Key of a text → digest of these sentences. Folders of earlier versions have
        none.
    """

    vectors: "Mapping[str, SentenceVectors]"
    digests: Mapping[str, str]


def vectors_to_arrays(encoded: EncodedTexts) -> dict[str, NDArray[Any]]:
    """Put the vectors of all texts into six arrays, or none where there are none."""
    vectors = encoded.vectors
    if not vectors:
        return {}
    width = max(of_text.rows.shape[1] for of_text in vectors.values())
    widths: list[int] = []
    rows = [np.zeros((0, width), np.int8)]
    scales = [np.zeros(0, np.float16)]
    counts: list[int] = []
    keys: list[str] = []
    digests: list[str] = []
    for key, of_text in vectors.items():
        if len(of_text.rows):  # a text without sentences has rows of another width
            n_missing = width - of_text.rows.shape[1]
            rows.append(np.pad(of_text.rows, ((0, 0), (0, n_missing))))
        widths.append(of_text.rows.shape[1])
        scales.append(of_text.scales)
        counts.append(len(of_text.scales))
        keys.append(f"{of_text.encoder} {key}")
        digests.append(encoded.digests.get(key, ""))
    return {
        _ROWS: np.concatenate(rows),
        _SCALES: np.concatenate(scales),
        _COUNTS: np.array(counts, np.int64),
        _WIDTHS: np.array(widths, np.int64),
        _KEYS: np.array(keys),
        _DIGESTS: np.array(digests),
    }


def vectors_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> EncodedTexts:
    """Restore what `vectors_to_arrays` put into arrays.

    ``ValueError`` for arrays that do not fit together.
    """
    if _KEYS not in arrays:
        return EncodedTexts({}, {})
    from spscanner_rag.encoder.sentence_vectors import SentenceVectors

    _check_arrays(arrays)
    rows = np.asarray(arrays[_ROWS])  # a view: slices of a map take longer
    scales = np.asarray(arrays[_SCALES])
    bounds = [0, *np.cumsum(arrays[_COUNTS]).tolist()]
    digests_of_texts = [""] * len(arrays[_COUNTS])
    if _DIGESTS in arrays:
        digests_of_texts = arrays[_DIGESTS].tolist()
    widths = [rows.shape[1]] * len(arrays[_COUNTS])
    if _WIDTHS in arrays:  # folders of earlier versions have one encoder
        widths = arrays[_WIDTHS].tolist()
    vectors: dict[str, SentenceVectors] = {}
    digests: dict[str, str] = {}
    for name, digest, width, (start, stop) in zip(
        arrays[_KEYS].tolist(), digests_of_texts, widths, pairwise(bounds), strict=True
    ):
        encoder, _, key = str(name).rpartition(" ")
        text_rows = rows[start:stop]
        if width < rows.shape[1]:
            text_rows = text_rows[:, :width]
        vectors[key] = SentenceVectors(text_rows, scales[start:stop], encoder)
        if digest:
            digests[key] = str(digest)
    return EncodedTexts(vectors, digests)


def _check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ``ValueError`` unless the arrays have the form and the lengths of ours."""
    rows = arrays[_ROWS]
    counts = arrays[_COUNTS]
    has_form = rows.ndim == 2 and len(counts) == len(arrays[_KEYS].tolist())
    for name, dtype in _DTYPES.items():
        has_form = has_form and arrays[name].dtype == dtype
    if not has_form or (counts < 0).any():
        raise ValueError("the vectors of its sentences have another form")
    n_sentences = len(rows)
    lengths_agree = n_sentences == len(arrays[_SCALES])
    if len(counts):
        lengths_agree = lengths_agree and int(np.cumsum(counts)[-1]) == n_sentences
    if not lengths_agree:
        raise ValueError(
            "the vectors of its sentences are more or fewer than their numbers say"
        )
