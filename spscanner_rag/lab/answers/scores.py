"""Compares answers with reference answers without a judge: token F1, exact match, and the option picked."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from string import ascii_uppercase, punctuation

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = dict.fromkeys(map(ord, punctuation))
_PICK = re.compile(
    r"(?:^|\b(?:option|choice|answer)(?:\s+is)?\b)[\W_]*(?:option\s+)?([A-Z])(?=\W*$|[).:\]*_])",
    re.IGNORECASE,
)
_ANOTHER = re.compile(r"(?<!\w)([A-Z])(?=[).:\]])|(?:\b(?:and|or)\b|[,/&+])[\W_]{0,5}([A-Z])(?!\w)")


def normalized(answer: str) -> str:
    """An answer as SQuAD compares it: lower case, without ASCII punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", _words(answer)).split())


def exact_match(answer: str, references: Iterable[str]) -> float:
    """1.0 if the answer equals one of the references once both are `normalized`, else 0.0."""
    return float(normalized(answer) in map(normalized, references))


def token_f1(answer: str, references: Iterable[str]) -> float:
    """F1 of the `normalized` words of an answer and its nearest reference, repetitions counted: 0 to 1."""
    return max(_f1(normalized(answer).split(), normalized(each).split()) for each in references)


def choice_in(answer: str, choices: Sequence[str]) -> int | None:
    """The option, from 0, whose letter or words an answer gives; None if it is none, several or unclear."""
    words = [_words(choice) for choice in choices]
    by_words = {i for i, own in enumerate(words) if own and own == _words(answer)}
    picks = by_words | _by_letter(answer, words)
    return picks.pop() if len(picks) == 1 else None


def _by_letter(answer: str, words: Sequence[str]) -> set[int]:
    """The option whose letter an answer gives, and any other option whose words or letter follow it."""
    letters = ascii_uppercase[: len(words)]
    pick = _PICK.search(answer)
    if pick is None or pick[1].upper() not in letters:
        return set()
    picked = letters.index(pick[1].upper())
    rest = answer[pick.end() :]
    if _words(rest) == words[picked]:
        return {picked}
    others = {i for i, own in enumerate(words) if own and own == _words(rest)}
    named = {match[1] or match[2] for match in _ANOTHER.finditer(rest)}
    return {picked} | others | {letters.index(letter) for letter in named if letter in letters}


def _words(text: str) -> str:
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))
