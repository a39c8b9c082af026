"""The words of a question that a text in another language may have too."""

import re

from spscanner_rag.text.languages import STOP_WORDS_OF

_WORD = re.compile(r"\w+(?:[-.,'’]\w+)*")  # noqa: RUF001

_LATIN_PART = re.compile(r"[A-Za-zÀ-ɏ\d]+(?:[.,]\d+)*")
_OTHER_LETTERS = re.compile(r"[^\W\d_\u0000-\u036f]{2}")


def names_and_numbers(question: str) -> str:
    """Return the names and numbers of a question, separated by spaces.

    A name begins with a capital letter and is a stop word of no language, or is in
    Latin letters in a question of another script.

    Examples
    --------
    >>> names_and_numbers("When did the Panthers win Super Bowl 50?")
    'Panthers Super Bowl 50'
    >>> names_and_numbers("Internet2是什么")
    'Internet2'
    """
    latin_question = _is_latin(question)
    words = []
    for match in _WORD.finditer(question):
        word = match[0]
        if not latin_question:
            words += _LATIN_PART.findall(word)
        elif any(map(str.isdigit, word)) or _is_name(word):
            words.append(word)
    return " ".join(words)


def _is_latin(question: str) -> bool:
    """Whether at most single letters, as in formulas, are not Latin."""
    return _OTHER_LETTERS.search(question) is None


def _is_name(word: str) -> bool:
    if not word[0].isupper():
        return False
    lowercase = word.lower()
    return not any(lowercase in words for words in STOP_WORDS_OF.values())
