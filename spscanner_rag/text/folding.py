"""Read words that look alike in one spelling, where Unicode, typesetting and fonts have several.

Only what is read changes, never a span. `fold_texts` is for the texts of a document,
`folded` for a question:

- Invisible characters are removed (soft hyphens, zero-width spaces, directions:
  Unicode's Default_Ignorable).
- The rest is normalized to NFKC: accents are composed; ligatures, full-width and styled
  letters become plain.
- Apostrophes, hyphens and dashes become those of ASCII.
- A word that was divided at the end of a line is joined (`as_written`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spscanner_rag.text.units import Unit

LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_SOFT_HYPHENS = "\u00ad\u00ac"  # some PDFs have the second in place of the first
HYPHENS = f"-\u2010{_SOFT_HYPHENS}"
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
BREAK = re.compile(rf"[{HYPHENS}][ \t\r]*\n[ \t]*")
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_REST = re.compile(r"(\S*)[ \t]*")
_LONGEST_PART = (
    40  # characters; a longer part is not taken for a part of a divided word
)

# Default_Ignorable_Code_Point of Unicode 16's DerivedCoreProperties.txt
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_APOSTROPHES = "\u00b4\u02b9\u02bb-\u02bd\u0384\u1fbd\u1fbf\u2018-\u201b\u2032\uff07"
_DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_REPLACED = re.compile(f"[{_IGNORABLE}{_APOSTROPHES}{_DASHES}\u2044]")
_EACH_REPLACED = [
    (re.compile(f"[{some}]"), by)
    for some, by in (
        (_IGNORABLE, ""),
        (_APOSTROPHES, "'"),
        (_DASHES, "-"),
        ("\u2044", "/"),
    )
]

# Signs that NFKC spells with letters or digits: "Acme™", "3½" and "①Open" must stay two
# words.
_SPELLED = "¼-¾℀℁℃℅℆℉№℠-™℻⅐-⅟↉①-⓿㆐-㆟㈀-㏿\U0001f100-\U0001f251"
# The number of a note at the end of a word; but "m²" and "km²" are one word.
_NOTE = "²³¹⁰⁴-⁹"
# Scripts without spaces between words, which a zero-width space may divide: Thai, Lao,
# Burmese, Khmer.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_APART = re.compile(
    rf"(?<=\w)(?=[{_SPELLED}])|(?<=[{_SPELLED}])(?=\w)|(?:(?<=[^\W\d_]{{3}})|(?<=[.!?,;:)\]]))(?=[{_NOTE}])"
    rf"|(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])"
)
_MAY_BE_APART = re.compile(f"[{_SPELLED}{_NOTE}\u200b]")


def folded(text: str) -> str:
    """A text as it is read; folding it again changes nothing.

    A text of ignorable characters alone is kept.
    """
    if text.isascii():
        return text
    plain = _APART.sub(" ", text) if _MAY_BE_APART.search(text) else text
    # before NFKC, so that the characters around them are composed; and after it, for
    # what it makes of ligatures
    plain = _replaced(unicodedata.normalize("NFKC", _replaced(plain)))
    return plain if plain.strip() else text


def fold_texts(texts: Sequence[str]) -> Sequence[str]:
    """Texts of one document, `folded`, with divided words joined.

    The same object if nothing changes.
    """
    if any("\n" in text and BREAK.search(text) for text in texts):
        texts = as_written(texts)
    return texts if all(map(str.isascii, texts)) else [folded(text) for text in texts]


def fold_units(units: Sequence[Unit]) -> Sequence[Unit]:
    """Units of one document with the `fold_texts` of their ``model_text``, and their spans as they are."""
    texts = [unit.model_text for unit in units]
    read = fold_texts(texts)
    if read is texts:
        return units
    return [
        unit._replace(model_text=text) for unit, text in zip(units, read, strict=True)
    ]


def _replaced(text: str) -> str:
    if _REPLACED.search(text):  # most texts have none
        for pattern, by in _EACH_REPLACED:
            text = pattern.sub(by, text)
    return text


def as_written(pages: Sequence[str]) -> list[str]:
    """The texts of the pages of a typeset document with divided words joined on the line where they begin.

    The hyphen is removed if the document has the joined word at least as often as
    "first-second", or neither of the two, nor both parts as separate words. Nothing is
    joined before a capital letter or a digit.
    """
    spelled = [page.translate(LIGATURES) for page in pages]
    divided = [list(_divided(page)) for page in spelled]
    if not any(divided):
        return spelled
    words = _words(spelled, divided)
    return [
        _joined(page, found, words)
        for page, found in zip(spelled, divided, strict=True)
    ]


class _Divided(NamedTuple):
    first: str  # the part before the hyphen
    hyphen: int  # its offset
    second: str
    start: int  # offset of the part after the line break


def _divided(page: str) -> Iterator[_Divided]:
    for match in BREAK.finditer(page):
        before = _LETTERS_BEFORE.search(
            page, max(0, match.start() - _LONGEST_PART), match.start()
        )
        after = _LETTERS.match(page, match.end(), match.end() + _LONGEST_PART)
        if before and after and after.group()[0].islower():
            yield _Divided(before.group(), match.start(), after.group(), match.end())


def _words(pages: Sequence[str], divided: Sequence[Sequence[_Divided]]) -> Counter[str]:
    """How often the document has each word that is not divided, in lower case.

    A compound is one word.
    """
    words: Counter[str] = Counter()
    for page, found in zip(pages, divided, strict=True):
        starts = [0, *(each.start + len(each.second) for each in found)]
        ends = [*(each.hyphen - len(each.first) for each in found), len(page)]
        for start, end in zip(starts, ends, strict=True):
            words.update(
                word.lower().replace("\u2010", "-")
                for word in _WORD.findall(page, start, end)
            )
    return words


def _joined(page: str, divided: Sequence[_Divided], words: Counter[str]) -> str:
    parts, cursor = [], 0
    for each in divided:
        if each.hyphen < cursor:  # a word on three lines
            continue
        hyphen = page[each.hyphen]
        if hyphen in _SOFT_HYPHENS or _set_by_the_line(
            each.first.lower(), each.second.lower(), words
        ):
            hyphen = ""
        rest = _REST.match(page, each.start)
        assert rest is not None
        # If the rest is the whole line, the line break after it is already there.
        after = "" if page[rest.end() : rest.end() + 1] in ("", "\n") else "\n"
        parts += [page[cursor : each.hyphen], hyphen, rest.group(1), after]
        cursor = rest.end()
    return "".join([*parts, page[cursor:]])


def _set_by_the_line(first: str, second: str, words: Counter[str]) -> bool:
    """True if a hyphen is there only because the line ended."""
    joined, compound = words[first + second], words[f"{first}-{second}"]
    if joined or compound:
        return joined >= compound
    return not (words[first] and words[second])
