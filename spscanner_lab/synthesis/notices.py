"""Licences and copyright notices, about which no question should be made."""

import re
from collections.abc import Iterable

_BOILERPLATE = re.compile(
    r"\ball rights reserved\b"
    r"|\bcopyright\b\s*(?:\(c\)|©|\d{4}|holders?\b|notice\b|owners?\b)|©\s*\d{4}"
    r"|\bpermission is hereby granted\b|\bwithout warrant(?:y|ies)\b"
    r"|\bmerchantability\b|\blicen[sc]ed under\b|\bthis licen[sc]e\b"
    r"|\bthe licen[sc]e\b.{0,40}\b(?:terms|agreement|copy)\b"
    r"|\bproject gutenberg\b|\bcreative commons\b"
    r"|\b(?:gnu|apache|mit|bsd)\b.{0,20}\blicen[sc]e\b"
    r"|\bterms of (?:use|service)\b|\bprivacy policy\b|\bisbn\b",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(?:copyright|licen[sc]e notice|licensing terms|all rights reserved)\b",
    re.IGNORECASE,
)
_BOILERPLATE_SHARE = 0.15


def is_about_a_notice(text: str) -> bool:
    """True if a connection or a question is about a licence or copyright notice.

    Examples
    --------
    >>> from spscanner_lab.synthesis.notices import is_about_a_notice
    >>> is_about_a_notice("Who holds the copyright?")
    True
    """
    return bool(_NOTICE.search(text) or _BOILERPLATE.search(text))


def is_boilerplate(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """True if many of these sentences of a text are of a licence or such a notice."""
    sentences = 0
    notices = 0
    for start, end in spans:
        sentences += 1
        notices += bool(_BOILERPLATE.search(text, start, end))
    return notices > _BOILERPLATE_SHARE * sentences
