"""Units of a document with structure: headings are read, not scored.

Fences and rows of tables are units.

A unit's ``model_text`` has all that is read; its span has only what is scored:

- A heading is read before the sentence that follows it.
- A row of a table is read after the header of its table, and is a unit.
- A turn of a conversation is a unit; a long one is cut into sentences, each read after
  its time and speaker.
- A fence (code) is a unit; a long one is cut at its lines.
- An item of a list is cut into sentences separately, like a paragraph.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from spscanner_rag.text.spans import cut_long_span, spans_between, trim_span
from spscanner_rag.text.units import Unit

LONGEST_UNIT = 1_000  # characters; a longer fence or row is cut, as a sentence is
LONGEST_TURN = 300
"""Characters.

A longer turn is cut into sentences: most of a long turn that has an answer is not the
answer.
"""

LONGEST_READ_WITH = 600
"""Maximum number of characters of headings read before a sentence, and of a header
before a row. Without it, a page of nothing but headings would be one unit."""

LEAST_HEADER, HEADER_SHARE = 60, 4
"""Of its header, a row reads at most the first number of characters plus the second
times its own length. In a table of many short rows, the header would otherwise be
most of what is read."""

BlockKind = Literal["heading", "item", "fence", "header", "row", "turn"]
"""A heading; a separate paragraph, such as an item of a list; code or other text
that is not prose; the header of a table; a row of a table, or another record; a turn
of a conversation."""

_LINE = re.compile("[^\n]+")
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
_LOOKED_AT = 200  # lines of a text that decide whether it has turns
_FEWEST = 3  # minimum number of turns
_SHARE, _TIMED_SHARE, _UNTIMED_SHARE = 0.2, 0.5, 0.6
"""Minimum shares of lines that begin a turn: with time and speaker, with a time,
with a speaker."""


class Block(NamedTuple):
    """A stretch of a text that is not running text.

    The blocks of a text are in order and disjoint.
    """

    start: int
    end: int
    kind: BlockKind
    # of a row: the span of its table's header; of a turn: its own beginning
    header: tuple[int, int] | None = None
    level: int = 0  # of a heading, from 1
    title: str = (
        ""  # of a heading: its words, without markup; of a turn: its time and speaker
    )


@runtime_checkable
class StructuredText(Protocol):
    """A text with its blocks, in order and disjoint, as `spscanner_rag.files.read` returns it."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def blocks(self) -> Sequence[Block]:
        """Its blocks."""


def segment_blocks(
    text: str, blocks: Iterable[Block], cut: Callable[[str], Sequence[Unit]]
) -> list[Unit]:
    """Cut a text with blocks, in order and disjoint, into units.

    ``cut`` cuts running text.

    Spans leave out headings and headers of tables if something follows them. The joined
    ``model_text`` is the text if that of ``cut`` is, except that every row after the
    first repeats the header of its table.
    """
    units = _Units(text, cut)
    cursor = 0
    for block in blocks:
        units.running(cursor, block.start)
        match block.kind:
            case "heading" | "header":
                units.read_first(
                    block.start, block.end, is_header=block.kind == "header"
                )
            case "fence":
                units.whole(block.start, block.end)
            case "row" | "turn":
                is_long = (
                    block.kind == "turn" and block.end - block.start > LONGEST_TURN
                )
                units.whole(block.start, block.end, block.header, by_sentences=is_long)
            case _:
                units.running(block.start, block.end)
        cursor = block.end
    units.running(cursor, len(text))
    return units.finished()


class _Units:
    """Collects units; text that is read but not scored waits for the next unit."""

    def __init__(self, text: str, cut: Callable[[str], Sequence[Unit]]) -> None:
        self.text, self.cut = text, cut
        self.found: list[Unit] = []
        self.waits_from = 0  # all text before this offset is in a unit
        self.waits_to = 0
        self.waiting_header = -1  # start of the header that waits

    def running(self, start: int, end: int) -> None:
        """Cut running text."""
        self.waits_to = end
        units = self.cut(self.text[start:end]) if trim_span(self.text, start, end) else ()
        if not units:
            return
        waiting = self._taken(start)
        edges = (
            self.found[-1].model_text[-1:] if self.found else " ",
            (waiting + units[0].model_text)[:1],
        )
        if not any(map(str.isspace, edges)):
            waiting = (
                "\n" + waiting
            )  # so that no word joins two stretches: a segmenter may trim white space
        for number, unit in enumerate(units):
            read = waiting + unit.model_text if not number else unit.model_text
            self.found.append(Unit(start + unit.start, start + unit.end, read))
        self.waits_from = end

    def read_first(self, start: int, end: int, *, is_header: bool) -> None:
        """Read a heading, or the header of a table, before what follows."""
        if end - self.waits_from > LONGEST_READ_WITH:
            self._score_waiting()
        self.waits_to = end
        self.waiting_header = start if is_header else -1

    def whole(
        self,
        start: int,
        end: int,
        header: tuple[int, int] | None = None,
        *,
        by_sentences: bool = False,
    ) -> None:
        """Make one unit of a fence, a row or a turn, or several of a long one."""
        self.waits_to = end
        span = trim_span(self.text, start, end)
        if span is None:
            return
        again = ""
        if header:
            most = LEAST_HEADER + HEADER_SHARE * min(span[1] - span[0], LONGEST_UNIT)
            last = min(header[1], header[0] + min(most, LONGEST_READ_WITH))
            again = self.text[header[0] : last] + "\n"
        # The first part of a turn begins with its speaker, and the header of a table
        # may wait to be read.
        before = "" if header and header[0] in (self.waiting_header, start) else again
        read = self.waits_from
        body = header[1] if header and header[0] == start else span[0]
        starts = (
            [unit.start + body for unit in self.cut(self.text[body : span[1]])]
            if by_sentences
            else []
        )
        for part in spans_between(iter([span[0], *starts[1:]]), span[1]):
            for first, last in cut_long_span(
                self.text, *(trim_span(self.text, *part) or part), LONGEST_UNIT
            ):
                self.found.append(
                    Unit(
                        first,
                        last,
                        self.text[read:first] + before + self.text[first:last],
                    )
                )
                read, before = last, again
        self.waits_from, self.waiting_header = read, -1

    def finished(self) -> list[Unit]:
        """All units, also of headings that nothing follows and of headers of tables without rows."""
        self.waits_to = len(self.text)
        self._score_waiting()
        left = self.text[self.waits_from :]
        if left and self.found:
            self.found[-1] = self.found[-1]._replace(
                model_text=self.found[-1].model_text + left
            )
        return self.found

    def _taken(self, start: int) -> str:
        """The waiting text before an offset, of at most `LONGEST_READ_WITH` characters."""
        if start - self.waits_from > LONGEST_READ_WITH:
            self._score_waiting()
        waiting = self.text[self.waits_from : start]
        self.waits_from, self.waiting_header = start, -1
        return waiting

    def _score_waiting(self) -> None:
        """Make units of the waiting text, because nothing follows it or it is too long."""
        span = trim_span(self.text, self.waits_from, self.waits_to)
        if span is None:
            return
        read = self.waits_from
        for line in _LINE.finditer(self.text, *span):
            own = trim_span(self.text, *line.span())
            for first, last in cut_long_span(self.text, *own, LONGEST_UNIT) if own else ():
                self.found.append(Unit(first, last, self.text[read:last]))
                read = last
        self.waits_from, self.waiting_header = read, -1


def turns_of(text: str) -> tuple[Block, ...]:
    """The turns of a plain text that is a transcript or a chat.

    None for any other text.
    """
    lines = [match[0].strip() for match in islice(LINE.finditer(text), _LOOKED_AT)]
    lines = [line for line in lines if line]
    timed = [
        next((number for number, way in enumerate(_TURNS) if way.match(line)), None)
        for line in lines
    ]
    spoken = sum(number in range(len(_TURNS) - 1) for number in timed)
    ways: Sequence[re.Pattern[str]] = _TURNS
    if spoken < max(_FEWEST, _SHARE * len(lines)) and len(timed) - timed.count(
        None
    ) < max(_FEWEST, _TIMED_SHARE * len(lines)):
        names = [match["name"] for line in lines if (match := _UNTIMED.match(line))]
        if len(names) < max(_FEWEST + 1, _UNTIMED_SHARE * len(lines)) or 2 * len(
            set(names)
        ) > len(names):
            return ()
        ways = (_UNTIMED,)
    return tuple(_turns(text, ways))


def _turns(text: str, ways: Sequence[re.Pattern[str]]) -> Iterator[Block]:
    parts: list[
        Block
    ] = []  # parts of the current turn; without times, a blank line ends a part
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
            time, *names = (
                found.groupdict().get(key)
                for key in ("time", "name", "nick", "sender", "doer")
            )
            label = " ".join(filter(None, [time, *names]))
            parts = [
                Block(
                    start, end, "turn", header=(start, start + found.end()), title=label
                )
            ]
        elif parts and ended:
            parts.append(parts[0]._replace(start=start, end=end))
        elif parts:
            parts[-1] = parts[-1]._replace(end=end)
        ended = False
    yield from (
        parts if len(ways) > 1 else parts[:1]
    )  # what follows the last turn may be other text
