"""A text as tokens and as words: what every question on it needs again."""

from dataclasses import dataclass
from functools import cached_property
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import TextWords, index_words
from spscanner_rag.text.language_parts import part_languages
from spscanner_rag.text.sentence_marks import sentence_marks
from spscanner_rag.text.speakers import Speakers, speakers_of
from spscanner_rag.text.tokenization import TokenizedText

_OBJECT_BYTES = 128  # of a unit without its text, or of a list of a few numbers


@dataclass(frozen=True)
class IndexedText(TokenizedText):
    """A tokenized text with the index of its words.

    It does not depend on the question.
    """

    @cached_property
    def words(self) -> TextWords:
        """The words of the units."""
        return index_words(self.sentences, fold=False)  # they are folded already

    @cached_property
    def marks(self) -> NDArray[np.float32]:
        """The marks of the units: (units, marks)."""
        return sentence_marks(self.sentences)

    @cached_property
    def speakers(self) -> Speakers:
        """Who says each unit, if the text is a conversation."""
        return speakers_of(self.sentences)

    @cached_property
    def unit_languages(self) -> list[str]:
        """The language of each unit, told with its neighbours: (units,).

        See `text.language_parts`.
        """
        return part_languages(self.sentences)

    @cached_property
    def languages(self) -> frozenset[str]:
        """The languages of its parts."""
        return frozenset(self.unit_languages)

    @cached_property
    def relative_lengths(self) -> NDArray[np.float32]:
        """The length of each unit, 1 being the mean of the text: (units,)."""
        lengths = [max(len(unit.model_text.strip()), 1) for unit in self.units]
        return np.asarray(lengths, np.float32) / max(float(np.mean(lengths or 1)), 1)

    @property
    def unit_tokens(self) -> NDArray[np.int64]:
        """How many tokens the reader reads for each unit: (units,)."""
        return np.diff(self.unit_ends, prepend=-1)

    @property
    def sentences(self) -> list[str]:
        """The texts of the units, as an encoder reads them."""
        return [unit.model_text for unit in self.units]

    @property
    def nbytes(self) -> int:
        """About how many bytes of memory it takes."""
        total = _OBJECT_BYTES * len(self.units)
        total += sum(getsizeof(unit.model_text) for unit in self.units)
        for array in (self.input_ids, self.token_starts, self.token_ends):
            total += array.nbytes
        total += self.unit_ends.nbytes
        if "marks" in vars(self):
            total += self.marks.nbytes
        if "words" in vars(self):
            total += _bytes_of_words(self.words)
        return total


def _bytes_of_words(words: TextWords) -> int:
    total = words.starts.nbytes + words.ends.nbytes + words.numbers.nbytes
    total += sum(array.nbytes for array in words.postings)
    total += sum(map(getsizeof, words.vocabulary))
    total += sum(map(getsizeof, words.of_stem))
    return total + _OBJECT_BYTES * len(words.of_stem)
