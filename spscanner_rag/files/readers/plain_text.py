"""Reads Markdown, tables, logs and transcripts unchanged, with their blocks.

Subtitles become turns.
"""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.text_builder import TextBuilder, decoded, looks_named
from spscanner_rag.text.block_segmentation import LONGEST_UNIT
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.sentence_starts import DATED
from spscanner_rag.text.turns import LINE, NAME, turns_of

_TIMING = re.compile(r"[ \t]*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]+-->")
_VOICE = re.compile(r"<v(?:\.[^\s>]{0,40})?[ \t]+([^>]{1,60})>")
_TAG = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_SPEAKER = re.compile(rf"(?:-|>>)?[ \t]*\[?({NAME})\]?:[ \t]+(?=\S)")
_SENTENCE_ENDS = tuple('.!?…"”')
_LONG_TURN = 600
_LONG_UNKNOWN = 200
"""A turn longer than so many characters ends with its sentence; turns of unknown
speakers are shorter."""


class _Cue(NamedTuple):
    time: str
    speaker: str
    text: str


def read_subtitles(data: bytes) -> TextFile:
    """Read a WebVTT or SRT file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    turns: list[_Cue] = []
    for cue in _cues(decoded(data)):
        if turns and _goes_on(turns[-1], cue):
            turns[-1] = turns[-1]._replace(text=f"{turns[-1].text} {cue.text}")
        else:
            turns.append(cue)
    built = TextBuilder()
    for time, speaker, text in turns:
        built.turn(f"{time} {speaker}".strip(), text, after=": " if speaker else " ")
    return built.converted()


def _goes_on(turn: _Cue, cue: _Cue) -> bool:
    longest = _LONG_TURN if turn.speaker else _LONG_UNKNOWN
    if turn.speaker != cue.speaker or len(turn.text) > 1.5 * longest:
        return False
    ends_sentence = turn.text.endswith(_SENTENCE_ENDS)
    if turn.speaker and len(turn.text) <= longest:
        return True
    return not ends_sentence


def _cues(text: str) -> Iterator[_Cue]:
    """Yield what is said at each time.

    A speaker continues until another one is named.
    """
    speaker = last = ""
    for time, lines in _timed(text):
        for line in lines:
            parts = _VOICE.split(line)
            for voice, words in zip(["", *parts[1::2]], parts[::2], strict=True):
                voice = _shown(voice)
                words = _shown(_TAG.sub("", words))
                if match := _SPEAKER.match(words):
                    voice = match[1]
                    words = words[match.end() :]
                speaker = voice or speaker
                if words and words != last:  # rolling captions repeat their lines
                    yield _Cue(time, speaker, words)
                last = words or last


def _shown(text: str) -> str:
    return " ".join(html.unescape(text).split())


def _timed(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    time = ""
    lines = list[str]()
    ended = True
    for match in LINE.finditer(text):
        line = match[0].strip()
        if timing := _TIMING.match(line):
            if time:
                yield time, lines
            hours, minutes, seconds = timing.groups()
            time = f"{int(hours or 0):02}:{int(minutes):02}:{seconds}"
            lines = []
            ended = False
        elif not line:
            ended = True
        elif not ended:  # after a blank line come numbers, names of cues, and notes
            if line.isdecimal() and _TIMING.match(text, match.end()):
                continue
            lines.append(line)
    if time:
        yield time, lines


def read_text(data: bytes) -> TextFile:
    """Read plain text unchanged.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    return TextFile("", text, turns_of(text))


_DELIMITERS = ",;\t|"
_LOOKED_AT = 20  # lines that decide the delimiter, and rows that decide the header
_MOST_LINES = 50  # lines of a row; a longer one has an unclosed quotation mark
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_.-]*")
_NUMBER = re.compile(r"[\s$€£+(-]*\d")

Row = tuple[int, int, Sequence[str]]  # start, end, cells


def read_table(data: bytes) -> TextFile:
    """Read a CSV or TSV file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    rows = _rows(text)
    looked_at = list(islice(rows, _LOOKED_AT))
    # also Excel's "sep=;"
    titles = list(takewhile(lambda row: sum(map(bool, row[2])) < 2, looked_at))
    first = looked_at[len(titles) :]
    header = None
    if first and looks_named([row[2] for row in first], fewest=2):
        header = first[0][:2]
    blocks = [Block(start, end, "row") for start, end, _ in titles]
    if header and _differs([row[2] for row in first]):
        blocks.append(Block(*header, "header"))
        del first[0]
    for part in (first, rows):
        for start, end, _ in part:
            row_header = None if (start, end) == header else header
            blocks.append(Block(start, end, "row", header=row_header))
    return TextFile("", text, tuple(blocks))


def read_log(data: bytes) -> TextFile:
    """Read a log.

    ``ValueError`` if it is not UTF-8 or UTF-16.

    An entry is a line and the indented lines below it or, if entries begin with a time,
    all lines without one.
    """
    text = decoded(data)
    blocks: list[Block] = []
    timed = len(list(islice(DATED.finditer(text), 2))) == 2 and bool(
        DATED.match(text.lstrip())
    )
    for line in LINE.finditer(text):
        start = line.start()
        end = line.start() + len(line[0].rstrip())
        if end == start or not line[0].strip():
            continue
        goes_on = not DATED.match(line[0]) if timed else line[0][0] in " \t"
        last = blocks[-1] if blocks and goes_on else None
        if last and end - last.start <= LONGEST_UNIT:
            blocks[-1] = last._replace(end=end)
        else:
            blocks.append(
                Block(start + len(line[0]) - len(line[0].lstrip()), end, "row")
            )
    return TextFile("", text, tuple(blocks))


def _rows(text: str) -> Iterator[Row]:
    """Yield the rows.

    After one that cannot be parsed, every line is a row.
    """
    read_to = 0

    def lines() -> Iterator[str]:
        nonlocal read_to
        for line in LINE.finditer(text):
            read_to = line.end()
            yield line[0]

    start = 0
    last_line = 0
    first = [
        line[0] for line in islice(LINE.finditer(text), _LOOKED_AT) if line[0].strip()
    ]
    counts = {sign: sorted(line.count(sign) for line in first) for sign in _DELIMITERS}
    # the delimiter that occurs most often in most rows
    table = csv.reader(
        lines(),
        delimiter=max(counts, key=lambda sign: counts[sign][len(first) // 4 :][:1]),
    )
    try:
        for cells in table:
            if table.line_num - last_line > _MOST_LINES:
                raise csv.Error("a quotation mark is not closed")
            yield from _row(text, start, read_to, cells)
            start = read_to
            last_line = table.line_num
    except csv.Error:
        for line in LINE.finditer(text, start):
            yield from _row(text, line.start(), line.end(), (line[0],))


def _row(text: str, start: int, end: int, cells: Sequence[str]) -> Iterator[Row]:
    content = text[start:end]
    if any(map(str.strip, cells)):
        yield (
            start + len(content) - len(content.lstrip()),
            start + len(content.rstrip()),
            cells,
        )


def _differs(rows: Sequence[Sequence[str]]) -> bool:
    """True if a column has numbers below a name, or words below an identifier.

    An identifier is a name such as "first_name".
    """
    for column, name in enumerate(rows[0]):
        below = [
            row[column] for row in rows[1:] if column < len(row) and row[column].strip()
        ]
        if below and not _NUMBER.match(name) and all(map(_NUMBER.match, below)):
            return True
        if (
            below
            and _IDENTIFIER.fullmatch(name)
            and not any(map(_IDENTIFIER.fullmatch, below))
        ):
            return True
    return False


if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_BREAK = re.compile("\r\n|\r|\n")
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)


def markdown_work(data: bytes) -> int:
    """Return the bytes that Markdown counts for.

    Its parser needs 500 bytes for each short line.
    """
    return 4 * len(data)


def read_markdown(data: bytes) -> TextFile:
    """Read a Markdown file.

    ``ValueError`` if it is not UTF-8 or UTF-16.
    """
    text = decoded(data)
    return TextFile("", text, tuple(blocks_of(text)))


def blocks_of(text: str) -> list[Block]:
    """The blocks of CommonMark with GitHub's tables, in order and disjoint.

    Inline markup is not parsed.
    """
    from markdown_it import MarkdownIt

    begin = 0
    blocks = []
    if front := _FRONT_MATTER.match(text):  # settings of a site generator
        begin = front.end()
        blocks.append(Block(0, len(front[0].rstrip()), "fence"))
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    breaks = [line_break.end() for line_break in _LINE_BREAK.finditer(text, begin)]
    blocks += _blocks(text, [begin, *breaks, len(text)], parser.parse(text[begin:]))
    return blocks


def _blocks(
    text: str, starts: Sequence[int], tokens: Sequence["Token"]
) -> Iterator[Block]:
    """The blocks of the lines that begin at ``starts``."""

    def span(first: int, stop: int) -> tuple[int, int]:
        start = starts[first]
        content = text[starts[first] : starts[stop]]
        return start + len(content) - len(content.lstrip()), start + len(
            content.rstrip()
        )

    header = (0, 0)
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        first, stop = token.map
        match token.type:
            case "heading_open":
                title = " ".join(tokens[number + 1].content.split())
                yield Block(
                    *span(first, stop), "heading", level=int(token.tag[1:]), title=title
                )
            case "fence" | "code_block":
                yield Block(*span(first, stop), "fence")
            case "paragraph_open" if token.level:  # in a list or a quotation
                yield Block(*span(first, stop), "item")
            case "thead_open":
                header = span(first, stop)
                yield Block(*span(first, stop + 1), "header")  # and the dashes below it
            case "tr_open" if starts[first] > header[0]:
                yield Block(*span(first, stop), "row", header=header)
