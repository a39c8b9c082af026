"""Marks of a sentence that anybody sees without understanding it.

They tell a scan over sentences what a score alone does not: a heading, a question or a
list item matches a question for other reasons than an answer does.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.scripts import GREEK, main_script

MARKS: Final = (
    "length",
    "asks",
    "ends",
    "introduces",
    "is_item",
    "is_heading",
    "has_speaker",
    "has_digit",
    "has_quote",
    "has_name",
    "goes_on",
)
"""What each number of a sentence's marks says."""

QUESTION_MARKS: Final = ("who", "when", "where", "amount", "reason", "manner", "length")
"""What each number of a question's marks says."""

_ENDS = frozenset(".!?\u2026\u3002\uff01\uff1f\u061f\u0964\u0965")
_QUESTION_ENDS = frozenset("?\uff1f\u061f\u037e")
_GREEK_QUESTION_END = ";"  # as which Unicode writes U+037E too
_CLOSING = "\"'\u201d\u2019\u00bb)]\u3011\u300d\u300f"
_BULLETS = (
    "*\u2013\u2014\u2022\u2023\u25e6\u00b7\u25cf\u25cb\u25a0\u25a1\u25aa\u25ab\u27a2-"
)
_ITEM = re.compile(rf"(?:[{_BULLETS}]|\(?(?:\d{{1,3}}|[A-Za-z]|[ivxIVX]{{1,4}})[.)])\s")
_SPEAKER = re.compile(r"[^\W\d_][\w .'\u2019-]{0,30}:\s")
_NAME = re.compile(r"(?<=[^\W_][ ,])[^\W\d_a-zß-ÿ]\w")
_DIGIT = re.compile(r"\d")
_LONGEST_HEADING = 80
_LENGTH_SCALE = 6.0

_QUESTION_WORDS: Final = (
    re.compile(r"\b(?:who|whom|whose)\b"),
    re.compile(r"\b(?:when|what (?:year|date|day|time)|how long|how soon)\b"),
    re.compile(r"\bwhere\b"),
    re.compile(r"\bhow (?:many|much|far|often|old|high|big)\b"),
    re.compile(r"\b(?:why|what (?:caused|led)|how come)\b"),
    re.compile(r"\bhow\b"),
)


def sentence_marks(sentences: Sequence[str]) -> NDArray[np.float32]:
    """Return the marks of sentences, (sentences, marks), in the order of `MARKS`.

    Each is 0 or 1, but for the length, which is a logarithm.

    Parameters
    ----------
    sentences : sequence of str
        In the order of the text.

    Examples
    --------
    >>> from spscanner_rag.text.sentence_marks import MARKS, sentence_marks
    >>> marks = sentence_marks(["Who signs the papers?", "Ann: Bob does."])
    >>> [marks[:, MARKS.index(name)].tolist() for name in ("asks", "has_speaker")]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = np.zeros((len(sentences), len(MARKS)), np.float32)
    for row, sentence in zip(rows, sentences, strict=True):
        row[:] = _marks_of(sentence.strip())
    return rows


def question_marks(question: str) -> NDArray[np.float32]:
    """Return the marks of a question, in the order of `QUESTION_MARKS`.

    English questions alone have others than the length.

    Parameters
    ----------
    question : str
        As it was asked.
    """
    folded = question.lower()
    asks = [float(bool(words.search(folded))) for words in _QUESTION_WORDS]
    return np.array([*asks, np.log1p(len(folded)) / _LENGTH_SCALE], np.float32)


def _marks_of(sentence: str) -> tuple[float, ...]:
    bare = sentence.rstrip(_CLOSING)
    last = bare[-1:]
    first = sentence[:1]
    ends = last in _ENDS and bool(last)
    begins_high = first.isupper() or first.isdigit() or first == "#"
    is_short = 0 < len(sentence) <= _LONGEST_HEADING
    return (
        np.log1p(len(sentence)) / _LENGTH_SCALE,
        float(_asks(sentence, last)),
        float(ends),
        float(last == ":"),
        float(_ITEM.match(sentence) is not None),
        float(is_short and begins_high and not ends and last != ":"),
        float(_SPEAKER.match(sentence) is not None),
        float(_DIGIT.search(sentence) is not None),
        float('"' in sentence or "\u201c" in sentence or "\u00ab" in sentence),
        float(_NAME.search(sentence) is not None),
        float(first.islower()),
    )


def _asks(sentence: str, last: str) -> bool:
    """Whether a sentence with a last character before closing marks is a question."""
    if last == _GREEK_QUESTION_END and not sentence.isascii():
        return main_script([(sentence, 1)]) == GREEK
    return bool(last) and last in _QUESTION_ENDS
