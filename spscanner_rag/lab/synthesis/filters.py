"""Documents that no data is made from: another language, licences and copyright notices, repetitions."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

_PART_CHARACTERS = 1_500
_BOILERPLATE_SHARE = 0.15
_MISTAKEN = 0.5
"""A question counts as one in another language from this probability on: short texts are hard to tell."""

_BOILERPLATE = re.compile(
    r"\ball rights reserved\b|\bcopyright\b\s*(?:\(c\)|©|\d{4}|holders?\b|notice\b|owners?\b)|©\s*\d{4}|"
    r"\bpermission is hereby granted\b|\bwithout warrant(?:y|ies)\b|\bmerchantability\b|"
    r"\blicen[sc]ed under\b|\bthis licen[sc]e\b|\bthe licen[sc]e\b.{0,40}\b(?:terms|agreement|copy)\b|"
    r"\bproject gutenberg\b|\bcreative commons\b|\b(?:gnu|apache|mit|bsd)\b.{0,20}\blicen[sc]e\b|"
    r"\bterms of (?:use|service)\b|\bprivacy policy\b|\bisbn\b",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(?:copyright|licen[sc]e notice|licensing terms|all rights reserved)\b", re.IGNORECASE
)


class LanguageDetector:
    """Tells the language of a text with py3langid, which works offline.

    Raises
    ------
    ImportError
        If py3langid is not installed; the message says how to install it.
    """

    def __init__(self) -> None:
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise ImportError(
                'the language filter needs py3langid: pip install "spscanner-rag[synthesize]", or set '
                "--language-probability 0"
            ) from None
        self._model: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def probability(self, text: str, language: str) -> float:
        """The probability that a text is in a language; long texts are read at three places."""
        return float(dict(self._model.rank(_parts(text))).get(language, 0.0))

    def is_other(self, question: str, language: str) -> bool:
        """Whether a question is clearly in another language."""
        found, probability = self._model.classify(question)
        return found != language and float(probability) >= _MISTAKEN


def is_boilerplate(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether many sentences of a text speak of licences and copyright."""
    if not spans:
        return False
    found = sum(bool(_BOILERPLATE.search(text, *span)) for span in spans)
    return found > _BOILERPLATE_SHARE * len(spans)


def is_about_a_notice(text: str) -> bool:
    """Whether a connection or a question is about a licence or copyright notice."""
    return bool(_NOTICE.search(text) or _BOILERPLATE.search(text))


class SeenTexts:
    """Which texts have come before; case and white space do not matter. Keeps eight bytes of a digest for each."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def is_new(self, text: str) -> bool:
        """Note a text; False if it was noted before."""
        content = " ".join(text.split()).casefold().encode("utf-8", "surrogatepass")
        key = int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
        before = len(self._seen)
        self._seen.add(key)
        return len(self._seen) > before


def _parts(text: str) -> str:
    if len(text) <= 3 * _PART_CHARACTERS:
        return text
    middle = len(text) // 2
    return "\n".join(
        (text[:_PART_CHARACTERS], text[middle : middle + _PART_CHARACTERS], text[-_PART_CHARACTERS:])
    )
