"""The turns of a transcript or a chat, found in a plain text."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from spscanner_rag.text.blocks import Block

LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
NAME = r"[^\W\d_][\w.'’&-]{0,30}(?: [\w.'’&()-]{1,30}){0,3}"  # noqa: RUF001
_NICK = r"[^\s<>:]{1,31}"
DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,6})?(?: ?[AaPp]\.?[Mm]\b\.?)?"
_TIME = rf"(?:{DATE}(?:, ?|[ T]))?{_CLOCK}(?:, {DATE})?"
_TIME_ALONE = re.compile(rf"[\[(]?(?P<time>{_TIME})[\])]?(?=\s|$)")
# The ways in which a turn begins, with groups for its time and its speaker.
_TIMED = (
    re.compile(
        rf"[\[(]?(?P<time>{_TIME})[\])]?[ \t]*[-–—]?[ \t]*(?:\* "  # noqa: RUF001
        rf"(?P<doer>{_NICK})|<[@+%~& ]?(?P<nick>{_NICK})>"
        rf"|From[ \t]+(?P<sender>{NAME}?)[ \t]+to[ \t]+[^:\n]{{1,60}}:"
        rf"|(?:~[ \t]*)?(?P<name>{NAME})[ \t]?:)(?=\s|$)"
    ),
    re.compile(rf"(?P<name>{NAME})[ \t]*[\[(](?P<time>{_TIME})[\])][ \t]*:?(?=\s|$)"),
    re.compile(rf"(?P<name>{NAME})[ \t]+(?P<time>{_TIME})[ \t]*$"),
    re.compile(rf"[\[(]?(?P<time>{_TIME})[\])]?[ \t]+(?P<name>{NAME})[ \t]*$"),
    _TIME_ALONE,
)
_SPEAKER_GROUPS = ("name", "nick", "sender", "doer")
_UNTIMED = re.compile(rf"(?P<name>{NAME}):[ \t]+(?=\S)")
_WAYS = (*_TIMED, _UNTIMED)
_LOOKED_AT = 200  # lines of a text that decide whether it has turns
_FEWEST_TURNS = 3
# Minimum shares of lines that begin a turn: with time and speaker, with a time, with a
# speaker.
_SPOKEN_SHARE = 0.2
_TIMED_SHARE = 0.5
_UNTIMED_SHARE = 0.6


def turns_of(text: str) -> tuple[Block, ...]:
    r"""The turns of a plain text that is a transcript or a chat.

    Any other text has none.

    Examples
    --------
    >>> chat = "[12:01] Ann: Is it shut?\n[12:02] Ben: It is.\n[12:05] Ann: Good.\n"
    >>> [turn.title for turn in turns_of(chat)]
    ['12:01 Ann', '12:02 Ben', '12:05 Ann']
    """
    lines = []
    for match in islice(LINE.finditer(text), _LOOKED_AT):
        if line := match[0].strip():
            lines.append(line)
    if _has_timed_turns(lines):
        return tuple(_turns(text, _TIMED))
    if _has_untimed_turns(lines):
        return tuple(_turns(text, (_UNTIMED,)))
    return ()


def speaker_of(line: str) -> str:
    """Return who speaks in the turn that a line begins.

    It is empty if the line begins none, or one without a speaker.

    Examples
    --------
    >>> [speaker_of(line) for line in ("[12:01] Ann: Is it shut?", "12:02", "It is.")]
    ['Ann', '', '']
    """
    beginning = _beginning(line, _WAYS)
    if beginning is None:
        return ""
    groups = beginning.groupdict()
    return next(filter(None, map(groups.get, _SPEAKER_GROUPS)), "")


def _has_timed_turns(lines: Sequence[str]) -> bool:
    """True if enough lines begin a turn with a time, or with a time and a speaker."""
    n_timed = 0
    n_spoken = 0
    for line in lines:
        beginning = _beginning(line, _TIMED)
        if beginning is not None:
            n_timed += 1
            n_spoken += beginning.re is not _TIME_ALONE
    if n_spoken >= max(_FEWEST_TURNS, _SPOKEN_SHARE * len(lines)):
        return True
    return n_timed >= max(_FEWEST_TURNS, _TIMED_SHARE * len(lines))


def _has_untimed_turns(lines: Sequence[str]) -> bool:
    """True if most lines begin with a name, and names come back."""
    names = []
    for line in lines:
        beginning = _UNTIMED.match(line)
        if beginning is not None:
            names.append(beginning["name"])
    if len(names) < max(_FEWEST_TURNS + 1, _UNTIMED_SHARE * len(lines)):
        return False
    return 2 * len(set(names)) <= len(names)


def _turns(text: str, ways: Sequence[re.Pattern[str]]) -> Iterator[Block]:
    """The turns of a text that begin in one of the ``ways``.

    Without times, a blank line ends a part of a turn.
    """
    untimed = len(ways) == 1
    parts: list[Block] = []  # of the current turn
    part_ended = False
    for line in LINE.finditer(text):
        content = line[0].strip()
        if not content:
            part_ended = untimed
            continue
        start = line.start() + len(line[0]) - len(line[0].lstrip())
        end = start + len(content)
        beginning = _beginning(content, ways)
        if beginning is not None:
            yield from parts
            header = (start, start + beginning.end())
            title = _time_and_speaker(beginning)
            parts = [Block(start, end, "turn", header=header, title=title)]
        elif parts and part_ended:
            parts.append(parts[0]._replace(start=start, end=end))
        elif parts:
            parts[-1] = parts[-1]._replace(end=end)
        part_ended = False
    # What follows the last turn may be other text.
    yield from parts[:1] if untimed else parts


def _beginning(line: str, ways: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    """The beginning of a turn in the first of the ways that matches."""
    for way in ways:
        match = way.match(line)
        if match is not None:
            return match
    return None


def _time_and_speaker(beginning: re.Match[str]) -> str:
    groups = beginning.groupdict()
    parts = map(groups.get, ("time", *_SPEAKER_GROUPS))
    return " ".join(part for part in parts if part)
