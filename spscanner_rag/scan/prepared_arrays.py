"""What is prepared of a text as plain arrays, for a folder, and back."""

from collections.abc import Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.postings import postings_of_text
from spscanner_rag.lexical.words import Stems, TextWords
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.reading import Reading
from spscanner_rag.system.version import __version__
from spscanner_rag.text.languages import LANGUAGES
from spscanner_rag.text.units import Unit

_TOKENS = ("input_ids", "token_starts", "token_ends")
_UNITS = ("unit_starts", "unit_stops", "unit_ends", "model_text_ends")
_WORDS = ("word_starts", "word_ends", "word_numbers")
_INDICES = (*_TOKENS, *_UNITS, *_WORDS)


def preparation_of(reading: Reading) -> str | None:
    """Return a digest of everything that decides what a text is prepared to.

    It includes the version of the package, since another one may cut differently. None
    if the segmenter is not one of the package.
    """
    segmenter = reading.segmenter
    if not type(segmenter).__module__.startswith("spscanner_rag.text."):
        return None
    plain = (str, int, float, bool, type(None))
    options: dict[str, object] = {}
    for name, value in vars(segmenter).items():
        if isinstance(value, plain):
            options[name] = value
    parts = (
        __version__,
        type(segmenter).__name__,
        sorted(options.items()),
        reading.folds,
        reading.lexical,
        reading.tokenizer.to_str(),
    )
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def prepared_to_arrays(indexed: IndexedText) -> dict[str, NDArray[Any]]:
    """Return the arrays of a text that `indexed_from_arrays` reads back.

    All have one dimension: numbers of tokens, units and words as int32, strings as the
    bytes of their UTF-8.
    """
    model_texts = [unit.model_text for unit in indexed.units]
    arrays: dict[str, NDArray[Any]] = {}
    for name in _TOKENS:
        arrays[name] = getattr(indexed, name)
    arrays["unit_starts"] = indexed.starts.astype(np.int32)
    arrays["unit_stops"] = indexed.ends.astype(np.int32)
    arrays["unit_ends"] = indexed.unit_ends.astype(np.int32)
    lengths = np.array([len(model_text) for model_text in model_texts], np.int64)
    arrays["model_text_ends"] = np.cumsum(lengths).astype(np.int32)
    arrays["model_text"] = _bytes_of("".join(model_texts))
    if "words" in vars(indexed):
        words = indexed.words
        arrays["word_starts"] = words.starts.astype(np.int32)
        arrays["word_ends"] = words.ends.astype(np.int32)
        arrays["word_numbers"] = words.numbers
        arrays["vocabulary"] = _bytes_of(" ".join(words.vocabulary))
        arrays["language"] = _bytes_of(words.language)
    return arrays


def indexed_from_arrays(
    text: str, arrays: Mapping[str, NDArray[Any]], *, lexical: bool
) -> IndexedText:
    """Return the prepared text of arrays.

    Parameters
    ----------
    text : str
        The text that was prepared.
    arrays : mapping
        What `prepared_to_arrays` returned.
    lexical : bool
        Whether the words are needed too.

    Raises
    ------
    ValueError
        For arrays that do not fit together, or do not fit the text.
    """
    _check_types(arrays, lexical)
    model_text = _string_of(arrays["model_text"])
    ends = arrays["model_text_ends"]
    starts = arrays["unit_starts"]
    stops = arrays["unit_stops"]
    n_tokens = len(arrays["input_ids"])
    units_fit = len(starts) == len(stops) == len(ends) == len(arrays["unit_ends"])
    _require(units_fit and _are_spans(starts, stops, len(text)), "units")
    _require(_increase(ends) and _last(ends) == len(model_text), "units' texts")
    _require(all(len(arrays[name]) == n_tokens for name in _TOKENS), "tokens")
    _require(_increase(arrays["unit_ends"], below=n_tokens), "last tokens")
    units: list[Unit] = []
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    for (start, stop), (first, last) in zip(
        spans, pairwise([0, *ends.tolist()]), strict=True
    ):
        units.append(Unit(start, stop, model_text[first:last]))
    indexed = IndexedText(
        units,
        input_ids=np.asarray(arrays["input_ids"]),
        token_starts=np.asarray(arrays["token_starts"]),
        token_ends=np.asarray(arrays["token_ends"]),
        unit_ends=arrays["unit_ends"].astype(np.int64),
    )
    if lexical:
        vars(indexed)["words"] = _words_of(arrays, ends)
    return indexed


def _words_of(
    arrays: Mapping[str, NDArray[Any]], unit_stops: NDArray[np.int32]
) -> TextWords:
    """The words of a text, whose stems and postings are made again."""
    vocabulary = _string_of(arrays["vocabulary"]).split(" ")
    if vocabulary == [""]:
        vocabulary = []
    language = _string_of(arrays["language"])
    starts = arrays["word_starts"].astype(np.int64)
    numbers = np.asarray(arrays["word_numbers"])
    words_fit = len(starts) == len(arrays["word_ends"]) == len(numbers)
    _require(words_fit and language in LANGUAGES, "words")
    _require(_increase(starts, below=_last(unit_stops)), "words' places")
    # (words,): the unit that each word begins in
    units = np.searchsorted(unit_stops, starts, side="right").astype(np.int32)
    in_vocabulary = not len(numbers) or 0 <= numbers.min() <= numbers.max()
    _require(in_vocabulary and numbers.max(initial=-1) < len(vocabulary), "words")
    return TextWords(
        starts,
        arrays["word_ends"].astype(np.int64),
        numbers,
        vocabulary,
        Stems(language, vocabulary),
        postings_of_text(numbers, units, len(unit_stops)),
        language,
    )


def _check_types(arrays: Mapping[str, NDArray[Any]], lexical: bool) -> None:
    names = [*_TOKENS, *_UNITS, "model_text"]
    if lexical:
        names += [*_WORDS, "vocabulary", "language"]
    for name in names:
        expected = np.int32 if name in _INDICES else np.uint8
        array = arrays.get(name)
        if array is None or array.ndim != 1 or array.dtype != expected:
            raise ValueError(f"the prepared text has no {name}, or not as it was")


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"the {what} of the prepared text do not fit it")


def _are_spans(
    starts: NDArray[np.int32], stops: NDArray[np.int32], length: int
) -> bool:
    """True if these are spans of a text of that length, one after the other."""
    if not len(starts):
        return True
    in_order = (starts < stops).all() and (starts[1:] >= stops[:-1]).all()
    return bool(in_order and starts[0] >= 0 and stops[-1] <= length)


def _increase(values: NDArray[Any], below: int | None = None) -> bool:
    """True if numbers of at least 0 never decrease, and stay below a bound."""
    if not len(values):
        return True
    in_order = values[0] >= 0 and (np.diff(values) >= 0).all()
    return bool(in_order and (below is None or values[-1] < below))


def _last(values: NDArray[Any]) -> int:
    return int(values[-1]) if len(values) else 0


def _bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _string_of(array: NDArray[np.uint8]) -> str:
    return bytes(array).decode("utf-8", "surrogatepass")
