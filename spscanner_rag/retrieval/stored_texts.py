"""What a scorer has prepared of texts, as arrays that a folder keeps, and back."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORED_ARRAY_PREFIX = "prepared_"
_CONTENTS = "prepared_contents"
_STOPS = "prepared_stops"

TextArrays = Mapping[str, NDArray[Any]]
"""The arrays of one text by name, each of one dimension."""


class StoredTexts:
    """The arrays of prepared texts, end to end.

    Immutable. The arrays may be those of files, which are read where they are used.

    Parameters
    ----------
    preparation : str
        The `Scorer.preparation` of the scorer that made them.
    numbers : mapping
        The key of each text → its number.
    arrays : mapping
        The name of each array → that of all texts, end to end.
    stops : array of int64, (names, texts + 1)
        Where each text ends in each array, with 0 first.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.retrieval.stored_texts import StoredTexts
    >>> of_texts = {"a": {"ids": np.array([3, 4])}, "b": {"ids": np.array([5])}}
    >>> stored = StoredTexts.of("digest", of_texts)
    >>> stored.arrays_of("b", "digest")["ids"].tolist()
    [5]
    """

    def __init__(
        self,
        preparation: str = "",
        numbers: Mapping[str, int] | None = None,
        arrays: TextArrays | None = None,
        stops: NDArray[np.int64] | None = None,
    ) -> None:
        self.preparation = preparation
        self._numbers = dict(numbers or {})
        self._arrays = dict(arrays or {})
        self._stops = np.zeros((0, 1), np.int64) if stops is None else stops

    @classmethod
    def of(cls, preparation: str, texts: Mapping[str, TextArrays]) -> "StoredTexts":
        """Put the arrays of all texts, by key, end to end."""
        numbers = {key: number for number, key in enumerate(texts)}
        names = list(next(iter(texts.values()), {}))
        arrays: dict[str, NDArray[Any]] = {}
        stops = np.zeros((len(names), len(texts) + 1), np.int64)
        for row, name in enumerate(names):
            of_texts = [of_text[name] for of_text in texts.values()]
            arrays[name] = np.concatenate(of_texts)
            stops[row, 1:] = np.cumsum([len(array) for array in of_texts])
        return cls(preparation, numbers, arrays, stops)

    def arrays_of(self, key: str, preparation: str | None) -> TextArrays | None:
        """Return the arrays of a text, or None if they were not prepared like this."""
        number = self._numbers.get(key)
        if number is None or preparation != self.preparation:
            return None
        of_text: dict[str, NDArray[Any]] = {}
        for row, (name, array) in enumerate(self._arrays.items()):
            start, stop = self._stops[row, number : number + 2].tolist()
            of_text[name] = array[start:stop]
        return of_text

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays that `from_arrays` reads back, none where nothing is stored."""
        if not self._numbers:
            return {}
        contents = json.dumps(
            [self.preparation, list(self._arrays), list(self._numbers)]
        )
        arrays: dict[str, NDArray[Any]] = {
            _CONTENTS: np.frombuffer(contents.encode(), np.uint8),
            _STOPS: self._stops,
        }
        for name, array in self._arrays.items():
            arrays[STORED_ARRAY_PREFIX + name] = array
        return arrays

    @classmethod
    def from_arrays(cls, arrays: TextArrays) -> "StoredTexts":
        """Restore what `to_arrays` returned.

        ``ValueError`` for arrays that do not fit together.
        """
        if _CONTENTS not in arrays:
            return cls()
        preparation, names, keys = _contents_of(arrays[_CONTENTS])
        stops = arrays.get(_STOPS)
        if stops is None or stops.shape != (len(names), len(keys) + 1):
            raise ValueError("its prepared texts are more or fewer than their names")
        of_names: dict[str, NDArray[Any]] = {}
        for name, stops_of_name in zip(names, stops, strict=True):
            array = arrays.get(STORED_ARRAY_PREFIX + name)
            if array is None or array.ndim != 1 or not _fit(stops_of_name, len(array)):
                raise ValueError(f"{name} of its prepared texts does not fit")
            of_names[name] = np.asarray(array)  # a view: slices of a map take longer
        numbers = {key: number for number, key in enumerate(keys)}
        if len(numbers) < len(keys):
            raise ValueError("its prepared texts name a text twice")
        return cls(preparation, numbers, of_names, np.asarray(stops))


def _contents_of(array: NDArray[Any]) -> tuple[str, Sequence[str], Sequence[str]]:
    """The preparation, the names of the arrays, and the keys of the texts."""
    contents = json.loads(bytes(array))
    is_list = isinstance(contents, list) and len(contents) == 3
    if not is_list or not isinstance(contents[0], str):
        raise ValueError("the contents of its prepared texts have another form")
    preparation, names, keys = contents
    for strings in (names, keys):
        if not isinstance(strings, list):
            raise ValueError("the contents of its prepared texts have another form")
        if not all(isinstance(string, str) for string in strings):
            raise ValueError("the contents of its prepared texts have another form")
    return preparation, names, keys


def _fit(stops: NDArray[Any], length: int) -> bool:
    """True if these stops cut an array of that length into the texts' parts."""
    if stops.dtype != np.int64 or stops[0] != 0 or stops[-1] != length:
        return False
    return all(start <= stop for start, stop in pairwise(stops.tolist()))
