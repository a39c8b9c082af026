"""Sentences of one form that differ in their numbers, such as sixty invoices.

Models hardly tell them apart, since "6660" and "6523" mean about the same to them. So a
sentence with a number that is asked for comes before its siblings, which have another.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.words import TextWords, query_stems

LEAST_COMMON: Final = 0.5
"""Share of the distinct words without digits that siblings have in common, at least."""

LEAD: Final = 0.1
"""How far a sentence is before its best sibling, in logits."""

_MOST_SHARE = 0.1  # of the sentences may have a number that tells one
_FEW = 3  # sentences may have it in any text
_MOST_ASKED = 16  # sentences that are compared with all others


def before_siblings(
    logits: NDArray[np.float32], query: str, words: TextWords
) -> NDArray[np.float32]:
    """Return logits with sentences that have the numbers asked for before siblings.

    A sibling has fewer of the question's numbers, none that the sentence lacks, and no
    other word of the question that it lacks.

    Parameters
    ----------
    logits : array (sentences,)
        Of all sentences of a text.
    query : str
        The question, with numbers as the text writes them.
    words : TextWords
        The words of the text.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.lexical.words import index_words
    >>> from spscanner_rag.scan.numbered_siblings import before_siblings
    >>> words = index_words(["Bill 1 came to 70 marks. ", "Bill 2 came to 90 marks."])
    >>> logits = before_siblings(np.float32([2, 1]), "Which bill came to 90?", words)
    >>> int(logits.argmax())
    1
    """
    if not any(map(str.isdigit, query)):
        return logits
    has_word = _has_words(query, words)
    numbers = [word for word in has_word if _tells(word, has_word[word])]
    if not numbers:
        return logits
    counts = np.sum([has_word[number] for number in numbers], axis=0)
    asked = np.flatnonzero(counts == counts.max())
    if len(asked) > _MOST_ASKED:
        return logits
    table = _WordTable(words)
    may_be_sibling = (counts < counts.max()) & table.has_number
    raised = logits.copy()
    for sentence in asked.tolist():
        is_sibling = may_be_sibling & table.is_like(sentence)
        for mask in has_word.values():
            if not mask[sentence]:
                is_sibling &= ~mask
        if is_sibling.any():
            least = logits[is_sibling].max() + np.float32(LEAD)
            raised[sentence] = max(raised[sentence], least)
    return raised


def _has_words(query: str, words: TextWords) -> dict[str, NDArray[np.bool_]]:
    """Which sentences have each of the question's words, (sentences,), if any has."""
    has_word = {}
    for stem in query_stems(query, words.language):
        units = words.units_with(stem)
        if len(units):
            mask = np.zeros(words.postings.n_units, bool)
            mask[units] = True
            has_word[stem] = mask
    return has_word


def _tells(word: str, has_word: NDArray[np.bool_]) -> bool:
    """Whether a word is a number that few sentences have."""
    most = max(_FEW, _MOST_SHARE * len(has_word))
    return word[:1].isdigit() and int(has_word.sum()) <= most


class _WordTable:
    """The distinct words of the sentences of a text, one for each posting."""

    def __init__(self, words: TextWords) -> None:
        postings = words.postings
        self._n_units = postings.n_units
        is_number = np.array([word[:1].isdigit() for word in words.vocabulary], bool)
        numbers = np.repeat(postings.words, np.diff(postings.stops))
        is_word = ~is_number[numbers]
        self.has_number = np.zeros(self._n_units, bool)
        self.has_number[postings.units[~is_word]] = True
        self._numbers = numbers[is_word]  # in the vocabulary
        self._units = postings.units[is_word]
        self._n_words = np.bincount(self._units, minlength=self._n_units)
        self._vocabulary_size = len(words.vocabulary)

    def is_like(self, sentence: int) -> NDArray[np.bool_]:
        """Which sentences have `LEAST_COMMON` of their words in common with one."""
        is_own = np.zeros(self._vocabulary_size, bool)
        is_own[self._numbers[self._units == sentence]] = True
        common = np.bincount(
            self._units[is_own[self._numbers]], minlength=self._n_units
        )
        longer = np.maximum(self._n_words, self._n_words[sentence])
        return np.asarray(common >= LEAST_COMMON * np.maximum(longer, 1))
