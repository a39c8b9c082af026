"""Numbers of a question in the form in which a text writes them.

Models read "6,660" and "6660" as different words.
"""

import re
from collections.abc import Sequence
from typing import Final

MOST_NUMBERS: Final = 8
"""Maximum number of a question's numbers that are looked up."""

_SEPARATOR = "[,.'’ \u00a0\u2009\u202f]"  # noqa: RUF001
_NUMBER = re.compile(
    rf"(?<![\w.,])(?:\d{{4,15}}|\d{{1,3}}(?:{_SEPARATOR}\d{{3}}){{1,4}})(?![\w]|[.,]\d)"
)
_NOT_A_DIGIT = re.compile(r"\D")


def numbers_as_written(question: str, sentences: Sequence[str]) -> str:
    """Return a question with its large numbers as the sentences write them.

    A number that they have as it was asked, or not at all, stays.

    Examples
    --------
    >>> numbers_as_written("Who paid 6,660 marks?", ["Ann paid 6660 marks."])
    'Who paid 6660 marks?'
    >>> numbers_as_written("Wer zahlte 6660 Mark?", ["Anna zahlte 6.660 Mark."])
    'Wer zahlte 6.660 Mark?'
    """
    pieces = []
    position = 0
    for number in list(_NUMBER.finditer(question))[:MOST_NUMBERS]:
        written = _as_written(number[0], sentences)
        pieces += [question[position : number.start()], written]
        position = number.end()
    return "".join([*pieces, question[position:]])


def _as_written(number: str, sentences: Sequence[str]) -> str:
    """A number as the first sentence writes it that has it, or as it was asked."""
    if any(number in sentence for sentence in sentences):
        return number
    digits = _NOT_A_DIGIT.sub("", number)
    form = re.compile(rf"(?<![\w.,]){_grouped(digits)}(?![\w]|[.,]\d)")
    for sentence in sentences:
        match = form.search(sentence)
        if match is not None:
            return match[0]
    return number


def _grouped(digits: str) -> str:
    """A pattern of digits with or without a separator before each three."""
    first = len(digits) % 3 or 3
    groups = [digits[:first]]
    for start in range(first, len(digits), 3):
        groups.append(digits[start : start + 3])
    return f"{_SEPARATOR}?".join(groups)
