"""Starts of sentences that ``sentencex`` has no rule for.

These are turns of a conversation, lines of a log, rows of a table, and sentences in
items of lists.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from spscanner_rag.text.sentence_edges import BULLETS, CAPITAL, OPENING
from spscanner_rag.text.turns import DATE

# Where an enumeration continues after a semicolon: "1. He pays the rent; 2. He keeps it
# clean."
_AFTER_SEMICOLON = re.compile(rf"(?<=;)\s+(?=\d{{1,2}}[.,)]\s+{CAPITAL})")

# "(He was late.) She left."
_BRACKETED = re.compile(
    rf"(?:\A|\n|[.!?]\s)\({CAPITAL}[^()\n]{{1,300}}[.!?]\)\s+(?={OPENING}{CAPITAL})"
)

# A Chinese or Japanese sentence before one that begins with a number or a title.
_AFTER_IDEOGRAPHS = re.compile(r"[\u3002\uff01\uff1f](?=[\d《A-Za-z])")

# The ends of Khmer and Tibetan sentences.
_AFTER_KHMER = re.compile(r"[\u17d4\u17d5]\s*(?=[\u1780-\u17b3])")
_AFTER_TIBETAN = re.compile(r"[\u0f0d\u0f0e]+\s+(?=[\u0f40-\u0f6c])")

_ENDS_WITHOUT_A_RULE = (
    _AFTER_SEMICOLON,
    _BRACKETED,
    _AFTER_IDEOGRAPHS,
    _AFTER_KHMER,
    _AFTER_TIBETAN,
)

# An item of a list, which ``sentencex`` leaves whole.
_MARKER = re.compile(
    rf"\s*(?:[{BULLETS}]|"
    r"[(\[]?(?:\d{1,3}(?:\.\d{1,3}){0,5}|[A-Za-z]"
    r"|[ivx]{1,5}|[IVXLC]{1,6})[.)\],]{1,2})[ \t]+"
)
_SEVERAL = re.compile(r"[.!?]\s|\n\S")
_NARROWEST = 40  # characters: no text is set in narrower lines
_GOES_ON_AFTER = (",", ";", "-", "\u2010", "\u00ad")
_WORD = re.compile(r"\S+")
_LINE_START = re.compile(rf"(?<=\n)(?={OPENING}{CAPITAL})")

# Lines that are one record each: of a log, with its time; of a table; or a turn, with
# its time or speaker.
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?"
DATED = re.compile(  # the beginning of an entry of a log, or of a message
    rf"^[ \t]*(?:\[{_CLOCK}(?:, {DATE})?\]|\({_CLOCK}\)|(?:[A-Z]{{4,8}}[:"
    r" ]+)?[\[(]?(?:\d{4}([-/.])\d\d\1\d\d[T ]"
    rf"|\d\d?([-./])(?:\d\d?|[A-Z][a-z]{{2}})\2\d{{2,4}}(?::|,? ))\d{{1,2}}:\d\d"
    rf"|[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}|\d\d:\d\d:\d\d\b)",
    re.MULTILINE,
)
# A row of a table in Markdown, and an item of a list.
_TABLE_ROW = re.compile(r"^[ \t]*\|(?=[^\n]*\|[ \t]*$)", re.MULTILINE)
# Bullets, which always begin an item; and marks that do if the line before or after
# begins with the same one.
_BULLETED = re.compile(
    r"^[ \t]*[•‣∙✓✔✗✘☐☑☒□■●○◆◇❖➢➤►▶⁃][ \t]+(?=\S)",  # noqa: RUF001
    re.MULTILINE,
)
# A pictograph at the beginning of a line, and a setting: a key and its value. They
# begin a record if the line before or after does so too.
_PICTOGRAPH = re.compile(
    "^[ \t]*[\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff][\ufe0f\u200d\u2640\u2642"
    "\U0001f3fb-\U0001f3ff]*[ \t]+(?=\\S)",
    re.MULTILINE,
)
_SETTING = re.compile(
    r"^[ \t]*[^\W\d][\w.\-\[\]]{0,60}[ \t]{0,20}=(?!=)[ \t]{0,20}(?=\S)", re.MULTILINE
)
# A field of a form or an invoice, "Total due: 40 marks". Three in a row are records.
_FIELD = re.compile(
    r"^[ \t]*[^\W\d_](?:[^\n:.!?;]|\.(?! )){0,40}:[ \t]+(?=\S)", re.MULTILINE
)
_FEWEST_FIELDS = 3
_MARKED = re.compile(r"^[ \t]*([–—·→⇒])[ \t]+(?=\S)", re.MULTILINE)  # noqa: RUF001
_CLAUSE = re.compile(
    r"^[ \t]*\d{1,2}\.\d{1,2}((?:\.\d{1,2}){1,3})?\.?[ \t]+(?=[^\W\d_])", re.MULTILINE
)
_END_OF_ITEM = re.compile(r"[;:.](?:[ \t]+(?:and|or))?\s*\Z")
_REACH_BEFORE = 16  # characters before a line that tell how the one above ends
_LETTERED_ITEM = re.compile(r"^[ \t]*[a-z]\)[ \t]+(?=\S)", re.MULTILINE)
_LINE = re.compile(r"[^\n]+")
_GAP = re.compile(r"\S(?:[ \xa0]{3}|\t)[ \xa0\t]*\S")
_DIGIT = re.compile(r"\d")
# The dots that lead from a name to its price or page, on one line.
_LEADER = re.compile(r"(?<!\.)(?<!\. )(?:\.[ \t]?){6,}+(?=[^\s.])")
_NAMED = re.compile(
    rf"^[ \t]*({_CLOCK}(?=[ \t])|[^\W\d_][\w.'’-]{{0,30}}(?:"  # noqa: RUF001
    r" [A-Z][\w.'’-]{0,30}){0,3}:(?=[ \t]))",  # noqa: RUF001
    re.MULTILINE,
)


def more_starts(
    text: str, starts: Sequence[int], cut: Callable[[str], Sequence[int]]
) -> Iterator[int]:
    """Further starts of sentences, beside the ``starts`` that ``sentencex`` finds.

    ``cut`` returns those that it finds in a text that is not a list.

    Examples
    --------
    >>> text = "The lease says: 1. He pays the rent; 2. He keeps it clean."
    >>> [text[start:] for start in more_starts(text, [0], lambda text: [])]
    ['2. He keeps it clean.']
    """
    yield from _starts_of_records(text)
    for pattern in _ENDS_WITHOUT_A_RULE:
        for match in pattern.finditer(text):
            yield match.end()
    for start, end in pairwise([*starts, len(text)]):
        yield from _starts_in_item(text, start, end, cut)


def _starts_in_item(
    text: str, start: int, end: int, cut: Callable[[str], Sequence[int]]
) -> Iterator[int]:
    """Starts of the sentences and lines of an item of a list, if it is one."""
    marker = _MARKER.match(text, start, end)
    if marker is None or not _SEVERAL.search(text, marker.end(), end):
        return
    body = text[marker.end() : end]
    for position in cut(body):
        if not position or not body[position - 1].isspace():
            continue
        if not body[position].islower():
            yield marker.end() + position
    yield from _lines_of_item(text, start, end)


def _lines_of_item(text: str, start: int, end: int) -> Iterator[int]:
    """Starts of lines whose first word would fit on the line before.

    Such a line does not continue the sentence of the line before.
    """
    width = max(_NARROWEST, *map(len, text[start:end].splitlines()))
    for line in _LINE_START.finditer(text, start, end):
        break_before = line.start() - 1
        line_before = max(text.rfind("\n", start, break_before) + 1, start)
        width_before = break_before - line_before
        if text[line_before:break_before].rstrip().endswith(_GOES_ON_AFTER):
            continue
        word = _WORD.match(text, line.start(), end)
        if word and width_before + 1 + len(word[0]) <= width:
            yield line.start()


def _starts_of_records(text: str) -> Iterator[int]:
    """Starts of lines that are one record each."""
    yield from _starts_of_rows(text)
    for leader in _LEADER.finditer(text):
        yield text.rfind("\n", 0, leader.start()) + 1
        line_end = text.find("\n", leader.end())
        if line_end >= 0:
            yield line_end + 1
    for pattern in (DATED, _TABLE_ROW, _LETTERED_ITEM, _BULLETED):
        for match in pattern.finditer(text):
            yield match.start()
    yield from _starts_of_clauses(text)
    yield from _starts_of_marked_lines(text)
    yield from _starts_of_aligned_lines(text)
    yield from _starts_of_turns(text)


def _starts_of_rows(text: str) -> Iterator[int]:
    """Starts of rows of CSV or TSV, and of the line after them.

    Rows are at least three lines with equally many separators, none before a space.
    """
    lines = []
    for match in _LINE.finditer(text):
        lines.append((match.start(), match[0].strip()))  # Rows may be indented.
    for separator in ",;\t":
        if separator not in text:
            continue
        after_rows = False
        counted = ((_separators(row, separator), start) for start, row in lines)
        for n_separators, group in groupby(counted, key=lambda line: line[0]):
            starts = [start for _, start in group]
            if after_rows:
                yield starts[0]
            after_rows = n_separators > 0 and len(starts) > 2
            if after_rows:
                yield from starts


def _separators(row: str, separator: str) -> int:
    """Number of separators of a row, and 0 for a line that is prose."""
    if f"{separator} " in row or row[-1:] in (".", "!", "?"):
        return 0
    return row.count(separator)


def _starts_of_clauses(text: str) -> Iterator[int]:
    """Starts of lines that begin with the number of a clause, as "4.1.2 the toll".

    A number of two parts may be a decimal within a sentence, unless the line before
    ends with a sentence or an item.
    """
    for clause in _CLAUSE.finditer(text):
        reach = max(0, clause.start() - _REACH_BEFORE)
        if clause[1] or _END_OF_ITEM.search(text, reach, clause.start()):
            yield clause.start()


def _starts_of_aligned_lines(text: str) -> Iterator[int]:
    """Starts of lines of a table whose columns wide gaps part, and of the line after.

    At least three lines in a row have a gap, and half of them a digit, which columns of
    prose have not.
    """
    if _GAP.search(text) is None:
        return
    lines = list(_LINE.finditer(text))
    has_gaps = groupby(lines, key=lambda line: _GAP.search(line[0]) is not None)
    after_table = False
    for has_gap, group in has_gaps:
        rows = list(group)
        if after_table:
            yield rows[0].start()
        n_with_digits = sum(_DIGIT.search(row[0]) is not None for row in rows)
        after_table = has_gap and len(rows) > 2 and 2 * n_with_digits >= len(rows)
        if after_table:
            yield from (row.start() for row in rows)


def _starts_of_marked_lines(text: str) -> Iterator[int]:
    """Starts of lines with a dash, an arrow, a pictograph or a key, two in a row."""
    for before, after in pairwise(_MARKED.finditer(text)):
        if before[1] == after[1]:
            yield from _if_adjacent(text, before, after)
    for pattern in (_PICTOGRAPH, _SETTING):
        for before, after in pairwise(pattern.finditer(text)):
            yield from _if_adjacent(text, before, after)
    yield from _starts_of_fields(text)


def _starts_of_fields(text: str) -> Iterator[int]:
    """Starts of lines that are fields, three in a row."""
    run: list[int] = []
    next_line = 0
    for field in _FIELD.finditer(text):
        if field.start() != next_line:
            run = []
        run.append(field.start())
        next_line = _following_line(text, field)
        if len(run) == _FEWEST_FIELDS:
            yield from run
        elif len(run) > _FEWEST_FIELDS:
            yield run[-1]


def _if_adjacent(
    text: str, before: re.Match[str], after: re.Match[str]
) -> Iterator[int]:
    """The starts of two lines, if the second follows the first."""
    if _following_line(text, before) == after.start():
        yield before.start()
        yield after.start()


def _starts_of_turns(text: str) -> Iterator[int]:
    """Starts of lines that begin with a time or a name.

    The name occurs twice, or the line before or after begins with one too.
    """
    named_lines = list(_NAMED.finditer(text))
    times_of_name = Counter(match[1] for match in named_lines)
    following_lines = set()
    turns = set()
    for match in named_lines:
        following_lines.add(_following_line(text, match))
        if match[1][0].isupper() or match[1][0].isdigit():
            turns.add(match.start())
    for match in named_lines:
        start = match.start()
        adjacent = start in following_lines or _following_line(text, match) in turns
        if times_of_name[match[1]] > 1 or (start in turns and adjacent):
            yield start


def _following_line(text: str, match: re.Match[str]) -> int:
    return text.find("\n", match.end()) + 1
