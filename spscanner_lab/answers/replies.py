"""What a reply says: its answer, the option that it picks, a judge's decision."""

import re
from collections.abc import Sequence
from string import ascii_uppercase

from spscanner_lab.evidence.metrics import words_of
from spscanner_lab.llm.replies import without_thoughts

# \uff1a is the wide colon; \u2013 and \u2014 are dashes
_ANSWER = re.compile(r"\bANSWER\b[*_`\"']*\s*[:\uff1a][*_`\"']*")

_DECISION = re.compile(
    r"\bdecision\b[\s*_`\"']*(?::+|\uff1a|=|-+|\u2013|is\b)[\s*_`\"'(\[]*(yes|no)\b"
    r"(?=[*_`\"')\]}\s]*(?:$|[.,;:!(\u2013\u2014-]|because\b))",
    re.IGNORECASE | re.MULTILINE,
)
_EITHER = re.compile(
    r"\b(yes\W+or\W+(decision\W+)?no|no\W+or\W+(decision\W+)?yes)\b", re.IGNORECASE
)
_BARE = re.compile(r"\W*(yes|no)\W*", re.IGNORECASE)
_NOTHING_MORE = re.compile(r"\W*\Z")
_PICK = re.compile(
    r"(?:^|\b(?:option|choice|answer)(?:\s+is)?\b)[\W_]*(?:option\s+)?([A-Z])"
    r"(?=\W*$|[).:\]*_])",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"(?<!\w)([A-Z])(?=[).:\]])|(?:\b(?:and|or)\b|[,/&+])[\W_]{0,5}([A-Z])(?!\w)"
)


def answer_in(reply: str) -> tuple[str, bool]:
    """Return the answer in a reply, and whether it was marked as an answer.

    A marked answer is the first line after the last ``ANSWER:``; without such a mark,
    all of the reply is the answer.

    Examples
    --------
    >>> from spscanner_lab.answers.replies import answer_in
    >>> answer_in("REASON: It says so. ANSWER: the keeper")
    ('the keeper', True)
    """
    reply = without_thoughts(reply)
    marks = list(_ANSWER.finditer(reply))
    if not marks:
        return reply, False
    first_line = reply[marks[-1].end() :].strip().partition("\n")[0]
    return first_line.strip(" \t\r*_`"), True


def decision_in(reply: str) -> bool | None:
    """Return a judge's decision: True for YES, False for NO, None if it is unclear.

    A decision is the word DECISION, a colon (or dash, or "is"), and YES or NO as a
    separate word. If a reply contains both, as when the judge quotes the candidate,
    only a decision that ends the reply counts. A reply of only YES or NO also counts.

    Examples
    --------
    >>> from spscanner_lab.answers.replies import decision_in
    >>> decision_in("REASON: They agree. DECISION: YES")
    True
    """
    reply = without_thoughts(reply)
    if bare := _BARE.fullmatch(reply):
        return bare[1].lower() == "yes"
    decisions = list(_DECISION.finditer(reply))
    if not decisions:
        return None
    last = decisions[-1]
    start_of_line = reply.rfind("\n", 0, last.start()) + 1
    if _EITHER.search(reply, start_of_line):
        return None
    words = {match[1].lower() for match in decisions}
    if len(words) > 1 and not _NOTHING_MORE.match(reply, last.end()):
        return None
    return last[1].lower() == "yes"


def choice_in(answer: str, choices: Sequence[str]) -> int | None:
    """Return the option, from 0, whose letter or words an answer gives.

    None if it gives none or several.

    Examples
    --------
    >>> from spscanner_lab.answers.replies import choice_in
    >>> choice_in("B. a dog", ["a cat", "a dog"])
    1
    """
    choice_words = [words_of(choice) for choice in choices]
    picks = _with_words(words_of(answer), choice_words)
    picks |= _by_letter(answer, choice_words)
    return picks.pop() if len(picks) == 1 else None


def _with_words(words: str, choice_words: Sequence[str]) -> set[int]:
    """Return the options that have exactly these words."""
    if not words:
        return set()
    return {number for number, choice in enumerate(choice_words) if choice == words}


def _by_letter(answer: str, choice_words: Sequence[str]) -> set[int]:
    """Return the option whose letter an answer gives, and others named after it.

    Another option is named by its words or by its letter.
    """
    letters = ascii_uppercase[: len(choice_words)]
    pick = _PICK.search(answer)
    if pick is None or pick[1].upper() not in letters:
        return set()
    picked = letters.index(pick[1].upper())
    remainder = answer[pick.end() :]
    words_after = words_of(remainder)
    if words_after == choice_words[picked]:
        return {picked}
    picks = {picked} | _with_words(words_after, choice_words)
    for match in _ANOTHER.finditer(remainder):
        letter = match[1] or match[2]
        if letter in letters:
            picks.add(letters.index(letter))
    return picks
