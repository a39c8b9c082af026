"""Read words that look alike in one spelling.

Unicode, typesetting and fonts have several. Only what is read changes, never a span.
`fold_texts` is for the texts of a document, `folded` for a question:

- Invisible characters are removed (soft hyphens, zero-width spaces, directions:
  Unicode's Default_Ignorable).
- The others are normalized to NFKC: accents are composed; ligatures, full-width and
  styled letters become plain.
- Apostrophes, hyphens and dashes become those of ASCII.
- A word that was divided at the end of a line is joined (`text.divided_words`).
"""

import re
import unicodedata
from collections.abc import Sequence

from spscanner_rag.text.divided_words import has_divided_words, join_divided_words
from spscanner_rag.text.units import Unit

# Default_Ignorable_Code_Point of Unicode 16's DerivedCoreProperties.txt
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_APOSTROPHES = "\u00b4\u02b9\u02bb-\u02bd\u0384\u1fbd\u1fbf\u2018-\u201b\u2032\uff07"
_DASHES = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_REPLACED = re.compile(f"[{_IGNORABLE}{_APOSTROPHES}{_DASHES}\u2044]")
_REPLACEMENTS = (
    (re.compile(f"[{_IGNORABLE}]"), ""),
    (re.compile(f"[{_APOSTROPHES}]"), "'"),
    (re.compile(f"[{_DASHES}]"), "-"),
    (re.compile("\u2044"), "/"),
)

# Signs that NFKC spells with letters or digits: "Acme™", "3½" and "①Open" must stay two
# words.
_SPELLED = "¼-¾℀℁℃℅℆℉№℠-™℻⅐-⅟↉①-⓿㆐-㆟㈀-㏿\U0001f100-\U0001f251"
# The number of a note at the end of a word; but "m²" and "km²" are one word.
_NOTE = "²³¹⁰⁴-⁹"
# Scripts without spaces between words, which a zero-width space may divide: Thai, Lao,
# Burmese, Khmer.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_APART = re.compile(
    rf"(?<=\w)(?=[{_SPELLED}])|(?<=[{_SPELLED}])(?=\w)"
    rf"|(?:(?<=[^\W\d_]{{3}})|(?<=[.!?,;:)\]]))(?=[{_NOTE}])"
    rf"|(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])"
)
_MAY_BE_APART = re.compile(f"[{_SPELLED}{_NOTE}\u200b]")


def folded(text: str) -> str:
    r"""A text as it is read.

    Folding it again changes nothing.     A text of ignorable characters alone stays as
    it is.

    Examples
    --------
    >>> folded("The o\ufb03ce\u2019s caf\u00ad\u00e9 \u2013 3\u00bd miles") == (
    ...     "The office's caf\u00e9 - 3 1/2 miles"
    ... )
    True
    """
    if text.isascii():
        return text
    plain = _APART.sub(" ", text) if _MAY_BE_APART.search(text) else text
    # Before NFKC, so that the characters around them are composed; and after it, for
    # what it makes of ligatures.
    plain = _replaced(unicodedata.normalize("NFKC", _replaced(plain)))
    return plain if plain.strip() else text


def fold_texts(texts: Sequence[str]) -> Sequence[str]:
    r"""Texts of one document, `folded`, with divided words joined.

    The same object is returned if nothing changes.

    Examples
    --------
    >>> fold_texts(["The light-\nhouse is shut."])
    ['The lighthouse\nis shut.']
    """
    if any(map(has_divided_words, texts)):
        texts = join_divided_words(texts)
    if all(map(str.isascii, texts)):
        return texts
    return [folded(text) for text in texts]


def fold_units(units: Sequence[Unit]) -> Sequence[Unit]:
    """Units of one document with the `fold_texts` of their ``model_text``.

    Their spans stay as they are.
    """
    texts = [unit.model_text for unit in units]
    folded_texts = fold_texts(texts)
    if folded_texts is texts:
        return units
    folded_units = []
    for unit, text in zip(units, folded_texts, strict=True):
        folded_units.append(unit._replace(model_text=text))
    return folded_units


def _replaced(text: str) -> str:
    if not _REPLACED.search(text):  # Most texts have none.
        return text
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text
