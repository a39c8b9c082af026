"""Starts of sentences that a rule finds, but at which no sentence begins.

`false_starts` finds three kinds: the text after a heading that runs in, an item of an
enumeration whose other items stand within lines, and who says what is quoted before it
in Chinese and Japanese.
"""

import re
from collections.abc import Iterator, Sequence

from spscanner_rag.text.sentence_edges import BULLETS, CAPITAL

_NUMBER = (
    rf"(?:[{BULLETS}][ \t]+)?"
    r"(?:(?:Article|ARTICLE|Section|SECTION|Clause|CLAUSE|Sec\.|§+)[ \xa0]*)?"
    r"(?:\d{1,3}(?:\.\d{1,3}){0,4}[.,):]?|\([A-Za-z0-9]{1,4}\)|[A-Za-z][.)]"
    r"|[IVXLC]{1,6}[.)])(?:[ \xa0]+[-–—](?=[ \xa0]))?"  # noqa: RUF001
)
_SMALL_WORDS = "a|an|and|as|at|by|for|from|in|of|on|or|per|the|to|with|its|vs"
_TITLE_WORD = rf"{CAPITAL}[\w'’&/-]{{0,30}}"  # noqa: RUF001
_TITLE = (
    rf"{_TITLE_WORD}(?:[,;]?[ \xa0](?:&|{_SMALL_WORDS}|{_TITLE_WORD})(?![\w'’])){{0,9}}"  # noqa: RUF001
)
_FEW_WORDS = rf"{CAPITAL}[\w'’-]{{0,30}}(?:[ \xa0][\w'’-]{{1,30}}){{0,3}}"  # noqa: RUF001
_EMPHASIS = r"(?:\*{1,2}|_{1,2})"
# "8. Logo Rights.", "1. *Late fees.*" and "**Logo Rights.**" before text on the same
# line or the next.
# Marks after the full stop may be full stops (`sentence_ends.correct_ends`).
_RUN_IN = re.compile(
    rf"[ \t]*(?:{_NUMBER}[ \t]+(?:\*\*|__)?{_TITLE}\.{{1,3}}(?:\*\*|__)?"
    rf"|(?:\*\*|__)(?:{_NUMBER}[ \t]+)?{_TITLE}(?:\.(?:\*\*|__|\.\.)|(?:\*\*|__)\.)"
    rf"|(?:{_NUMBER}[ \t]+{_EMPHASIS}|{_EMPHASIS}{_NUMBER}[ \t]+){_FEW_WORDS}"
    rf"\.(?:{_EMPHASIS}|\.{{1,2}}))"
    r"[ \t\xa0]*\n?[ \t]*"
)
# "The mill .....23", in a table of contents.
_LEADER = re.compile(r"[.…]{4}[ \t]*\Z")
_LONGEST_LEADER = 16  # characters that are looked at
_PAGE = re.compile(r"\d{1,4}[ \t]*(?:\n|\Z)")
_NUMBERED = re.compile(rf"{_NUMBER}[ \t]")
_LONGEST_RUN_IN = 120  # characters

# "他说", "he said", after a quotation, and "と彼は言った"
_QUOTED = re.compile("[。\uff01\uff1f!?…][”」』]\\Z")
_WHO_SAYS = re.compile(
    "[^。\uff01\uff1f!?\uff0c,、“「『\n]{0,8}[说說道问問答喊叫嚷][道着了]?"
    "[。\uff0c,\uff1a:\uff01\uff1f]"
    "|(?:と(?!ても|ころ|き)|って)[^。「『\n]{1,24}[言聞答叫尋話思考呟]"
)

_ITEM = re.compile(r"\(([a-z]|[ivx]{1,4}|\d{1,2})\)[ \t]+[a-zß-öø-ÿ]")
_ENDS = ".!?:;…"
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_REACH = 4_000  # characters before an item in which the one before it is looked for


def false_starts(text: str, starts: Sequence[int]) -> Iterator[int]:
    r"""Those of the ``starts``, increasing, at which no sentence begins.

    Examples
    --------
    >>> text = "8. Logo Rights. The customer may use it. He may not sell it."
    >>> list(false_starts(text, [0, 16, 41]))
    [16]
    >>> list(false_starts("It ends if (a) he dies, or\n(b) he leaves.", [0, 27]))
    [27]
    """
    before = 0
    for start in starts:
        after_run_in = _is_after_run_in(text, before, start)
        continues = _continues_enumeration(text, start) or _ends_leader(text, start)
        if after_run_in or continues or _tells_who_says(text, start):
            yield start
        else:
            before = start


def _is_after_run_in(text: str, before: int, start: int) -> bool:
    """True if a heading runs in between two starts, and text follows it."""
    if start - before > _LONGEST_RUN_IN:
        return False
    is_at_line_start = not text[text.rfind("\n", 0, before) + 1 : before].strip()
    if not is_at_line_start or not _RUN_IN.fullmatch(text, before, start):
        return False
    following = text[start : start + _LONGEST_RUN_IN]
    return bool(following.strip()) and not _NUMBERED.match(following)


def _ends_leader(text: str, start: int) -> bool:
    """True for the number of a page at a line's end, after dots that lead to it."""
    if _PAGE.match(text, start) is None:
        return False
    return _LEADER.search(text, max(0, start - _LONGEST_LEADER), start) is not None


def _tells_who_says(text: str, start: int) -> bool:
    """True for what follows a quotation if it tells who says it."""
    is_quoted = _QUOTED.search(text, max(0, start - 2), start) is not None
    return is_quoted and _WHO_SAYS.match(text, start) is not None


def _continues_enumeration(text: str, start: int) -> bool:
    """True for an item "(b)" at a line's start if "(a)" is not at one.

    The text before it must end within a sentence.
    """
    item = _ITEM.match(text, start)
    before = text[max(0, start - _REACH) : start].rstrip()
    if item is None or not before or before[-1] in _ENDS:
        return False
    previous = _markers_before(item[1])
    if not previous:
        return False
    for marker in previous:
        if re.search(rf"(?:\A|\n)[ \t]*\({marker}\)", before):
            return False
    return True


def _markers_before(marker: str) -> list[str]:
    """The markers that may come right before an item's, none before the first."""
    if marker.isdigit():
        return [str(int(marker) - 1)] if int(marker) > 1 else []
    markers = []
    if marker in _ROMAN[1:]:
        markers.append(_ROMAN[_ROMAN.index(marker) - 1])
    if len(marker) == 1 and marker > "a" and (marker != "i" or markers):
        markers.append(chr(ord(marker) - 1))
    return markers
