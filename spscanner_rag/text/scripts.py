"""The scripts that letters belong to, and what their languages need of the package."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

LATIN: Final = "latin"
GREEK: Final = "greek"
HAN: Final = "han"
"""Han characters and kana: of Chinese and Japanese."""

_KANA_RANGES: Final = (
    (HAN, 0x3041, 0x30FF),
    (HAN, 0x31F0, 0x31FF),
    (HAN, 0xFF66, 0xFF9F),
)
_MIDDLE_DOT = 0x30FB  # of Japanese, but also in foreign names in Chinese

_RANGES: Final = (
    (GREEK, 0x370, 0x3FF),
    ("cyrillic", 0x400, 0x52F),
    ("armenian", 0x530, 0x58F),
    ("hebrew", 0x590, 0x5FF),
    ("arabic", 0x600, 0x6FF),
    ("arabic", 0x750, 0x77F),
    ("arabic", 0x8A0, 0x8FF),
    ("devanagari", 0x900, 0x97F),
    ("bengali", 0x980, 0x9FF),
    ("gurmukhi", 0xA00, 0xA7F),
    ("gujarati", 0xA80, 0xAFF),
    ("oriya", 0xB00, 0xB7F),
    ("tamil", 0xB80, 0xBFF),
    ("telugu", 0xC00, 0xC7F),
    ("kannada", 0xC80, 0xCFF),
    ("malayalam", 0xD00, 0xD7F),
    ("sinhala", 0xD80, 0xDFF),
    ("thai", 0xE00, 0xE7F),
    ("lao", 0xE80, 0xEFF),
    ("tibetan", 0xF00, 0xFFF),
    ("myanmar", 0x1000, 0x109F),
    ("georgian", 0x10A0, 0x10FF),
    ("hangul", 0x1100, 0x11FF),
    ("ethiopic", 0x1200, 0x139F),
    ("khmer", 0x1780, 0x17FF),
    (GREEK, 0x1F00, 0x1FFF),
    ("han", 0x2E80, 0x2FDF),
    ("han", 0x3005, 0x3007),
    _KANA_RANGES[0],
    ("hangul", 0x3130, 0x318F),
    _KANA_RANGES[1],
    ("han", 0x3400, 0x4DBF),
    ("han", 0x4E00, 0x9FFF),
    ("hangul", 0xAC00, 0xD7AF),
    ("han", 0xF900, 0xFAFF),
    ("arabic", 0xFB50, 0xFDFF),
    ("arabic", 0xFE70, 0xFEFE),
    _KANA_RANGES[2],
    ("hangul", 0xFFA0, 0xFFDC),
    ("han", 0x20000, 0x323AF),
)
_FIRSTS = [first for _, first, _ in _RANGES]

FIRST_OTHER: Final = chr(_FIRSTS[0])
"""The first letter of another script than Latin."""

UNSPACED: Final = frozenset(("thai", "lao", "myanmar", "khmer", "tibetan"))
"""Scripts that, like Han, have no white space between words."""

LETTERS_WITH_MARKS: Final = (
    r"\w\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7"
    r"\u0a01-\u0a03\u0a3c-\u0a51\u0a70-\u0a75\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03"
    r"\u0b3c-\u0b57\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83"
    r"\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57\u0d82\u0d83\u0dca-\u0df3\u0e31-\u0e3a"
    r"\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84\u102b-\u103e\u1056-\u1059"
    r"\u17b4-\u17d3"
)
"""Letters and their marks, as the inside of a character class. Python's own class of
word characters has no vowel signs, and cuts Hindi and Thai words at each."""


@lru_cache(maxsize=8192)
def script_of(letter: str) -> str:
    """The script of a letter, in small letters.

    All others than those of the table count as Latin.

    Examples
    --------
    >>> [script_of(letter) for letter in "eλя語"]
    ['latin', 'greek', 'cyrillic', 'han']
    """
    code = ord(letter)
    number = bisect_right(_FIRSTS, code) - 1
    if number >= 0:
        script, _, last = _RANGES[number]
        if code <= last:
            return script
    return LATIN


def has_kana(text: str) -> bool:
    """Whether a text has hiragana or katakana, and so is Japanese and not Chinese.

    Examples
    --------
    >>> has_kana("誰が書いたか"), has_kana("約翰・埃爾維是誰")
    (True, False)
    """
    return any(map(_is_kana, text))


def _is_kana(letter: str) -> bool:
    code = ord(letter)
    if code == _MIDDLE_DOT:
        return False
    return any(first <= code <= last for _, first, last in _KANA_RANGES)


def main_script(words: Iterable[tuple[str, int]]) -> str:
    """The script of at least half of the letters of words with their counts.

    Latin if there is none.
    """
    letters: Counter[str] = Counter()
    for word, count in words:
        for letter in word:
            letters[letter] += count
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        if letter.isalpha():
            scripts[script_of(letter)] += count
    for script, count in scripts.most_common(1):
        if 2 * count >= scripts.total():
            return script
    return LATIN
