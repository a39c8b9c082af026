"""Turns of plain text that is a transcript or a chat: each is read with its time and speaker."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from spscanner_rag.text.blocks import Block

LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
NAME = r"[^\W\d_][\w.'’&-]{0,30}(?: [\w.'’&()-]{1,30}){0,3}"  # noqa: RUF001
_NICK = r"[^\s<>:]{1,31}"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,6})?(?: ?[AaPp]\.?[Mm]\b\.?)?"
_TIME = rf"(?:{_DATE}(?:, ?|[ T]))?{_CLOCK}"
_TURNS = (  # the ways in which a turn begins, with groups "time" and "name"
    re.compile(
        rf"[\[(]?(?P<time>{_TIME})[\])]?[ \t]*[-–—]?[ \t]*(?:\* (?P<doer>{_NICK})|<[@+%~& ]?(?P<nick>{_NICK})>"  # noqa: RUF001
        rf"|From[ \t]+(?P<sender>{NAME}?)[ \t]+to[ \t]+[^:\n]{{1,60}}:"
        rf"|(?:~[ \t]*)?(?P<name>{NAME})[ \t]?:)(?=\s|$)"
    ),
    re.compile(rf"(?P<name>{NAME})[ \t]*[\[(](?P<time>{_TIME})[\])][ \t]*:?(?=\s|$)"),
    re.compile(rf"(?P<name>{NAME})[ \t]+(?P<time>{_TIME})[ \t]*$"),
    re.compile(rf"[\[(]?(?P<time>{_TIME})[\])]?[ \t]+(?P<name>{NAME})[ \t]*$"),
    re.compile(rf"[\[(]?(?P<time>{_TIME})[\])]?(?=\s|$)"),
)
_UNTIMED = re.compile(rf"(?P<name>{NAME}):[ \t]+(?=\S)")
_LOOKED_AT = 200  # lines of a text
_FEWEST = 3  # turns of talk
_SHARE, _TIMED_SHARE, _UNTIMED_SHARE = 0.2, 0.5, 0.6
"""Of the lines that begin a turn: with time and speaker, with a time, with a speaker."""


def turns_of(text: str) -> tuple[Block, ...]:
    """The turns of a plain text that is a transcript or a chat; none of any other text."""
    lines = [match[0].strip() for match in islice(LINE.finditer(text), _LOOKED_AT)]
    lines = [line for line in lines if line]
    timed = [next((number for number, way in enumerate(_TURNS) if way.match(line)), None) for line in lines]
    spoken = sum(number in range(len(_TURNS) - 1) for number in timed)
    ways: Sequence[re.Pattern[str]] = _TURNS
    if spoken < max(_FEWEST, _SHARE * len(lines)) and len(timed) - timed.count(None) < max(
        _FEWEST, _TIMED_SHARE * len(lines)
    ):
        names = [match["name"] for line in lines if (match := _UNTIMED.match(line))]
        if len(names) < max(_FEWEST + 1, _UNTIMED_SHARE * len(lines)) or 2 * len(set(names)) > len(names):
            return ()
        ways = (_UNTIMED,)
    return tuple(_turns(text, ways))


def _turns(text: str, ways: Sequence[re.Pattern[str]]) -> Iterator[Block]:
    parts: list[Block] = []  # of the turn that is open; without times, a blank line ends a part
    ended = False
    for line in LINE.finditer(text):
        content = line[0].strip()
        if not content:
            ended = len(ways) == 1
            continue
        start = line.start() + len(line[0]) - len(line[0].lstrip())
        end = start + len(content)
        found = next((match for way in ways if (match := way.match(content))), None)
        if found:
            yield from parts
            time, *names = (found.groupdict().get(key) for key in ("time", "name", "nick", "sender", "doer"))
            label = " ".join(filter(None, [time, *names]))
            parts = [Block(start, end, "turn", header=(start, start + found.end()), title=label)]
        elif parts and ended:
            parts.append(parts[0]._replace(start=start, end=end))
        elif parts:
            parts[-1] = parts[-1]._replace(end=end)
        ended = False
    yield from parts if len(ways) > 1 else parts[:1]  # what follows the last turn may be other text
