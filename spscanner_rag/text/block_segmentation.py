"""Units of a document with structure: headings are read, not scored.

A unit's ``model_text`` has all that is read; its span has only what is scored:

- A heading is read before the sentence that follows it. One that reads like a sentence
  is also a unit.
- A row of a table is read after the header of its table, and is a unit.
- A turn of a conversation is a unit; a long one is cut into sentences, each read after
  its time and speaker.
- A fence (code) is a unit; a long one is cut at its lines.
- An item of a list is cut into sentences separately, like a paragraph.
- Markup is not read. Spans index the text with it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from spscanner_rag.text.blocks import Block
from spscanner_rag.text.spans import cut_long_span, spans_between, trim_span
from spscanner_rag.text.units import Unit
from spscanner_rag.text.visible_text import VisibleText

LONGEST_UNIT = 1_000
"""Characters: a longer fence or row is cut, as a sentence is."""

LONGEST_TURN = 300
"""Characters: a longer turn is cut into sentences, because most of a long turn that
has an answer is not the answer."""

LONGEST_READ_WITH = 600
"""Maximum number of characters of headings read before a sentence, and of a header
before a row. Without it, a page of nothing but headings would be one unit."""

LONGEST_TITLE = 300
"""Characters: a longer heading is a paragraph in large letters."""

LEAST_HEADER = 60
"""Characters of its header that even the shortest row reads."""

HEADER_SHARE = 4
"""A row reads at most `LEAST_HEADER` plus this many times its length of its header.
In a table of many short rows, the header would otherwise be most of what is read."""

_LINE = re.compile("[^\n]+")

# A title of at least three words that ends as a sentence does and has a word in small
# letters; or of two sentences. But "8. Logo Rights." is none, and a question is what
# its answer stands under.
_SENTENCE = re.compile(
    r"(?:\S+\s+){2,}\S*[.!…。！][\"'”’»›)\]*_#\s]*"  # noqa: RUF001
    r"|.*[a-zß-öø-ÿ]{3}[.!…。！][\"'”’»›)\]]?\s+\S+\s+\S+.*",  # noqa: RUF001
    re.DOTALL,
)
_SMALL_WORD = re.compile(r"(?<!\S)[a-zß-öø-ÿ]\w+(?!\S)")


def segment_blocks(
    text: str, blocks: Iterable[Block], cut: Callable[[str], Sequence[Unit]]
) -> list[Unit]:
    r"""Cut a text with blocks, in order and disjoint, into units.

    ``cut`` cuts running text, without markup. Spans leave out headings and headers of
    tables if something follows them. The joined ``model_text`` is the text without
    markup if that of ``cut`` is, except that every row after the first repeats the
    header of its table.

    Examples
    --------
    >>> from spscanner_rag.text.segmentation import SentenceSegmenter
    >>> text = "Harbour\nShips leave at noon. Nobody waits."
    >>> heading = Block(0, 7, "heading", level=1, title="Harbour")
    >>> for unit in segment_blocks(text, [heading], SentenceSegmenter().segment):
    ...     print(repr(text[unit.start : unit.end]), repr(unit.model_text))
    'Ships leave at noon.' 'Harbour\nShips leave at noon. '
    'Nobody waits.' 'Nobody waits.'
    """
    markup: list[Block] = []
    others: list[Block] = []
    for block in blocks:
        if block.kind == "markup":
            markup.append(block)
        else:
            others.append(block)
    if not markup:
        return _units_of_blocks(text, others, cut)
    visible = VisibleText(text, markup)
    units = []
    for unit in _units_of_blocks(visible.text, visible.blocks(others), cut):
        start, end = visible.original_span(unit.start, unit.end)
        units.append(unit._replace(start=start, end=end))
    return units


def reads_like_a_sentence(title: str) -> bool:
    """True for the words of a heading that are a sentence, and no question.

    Examples
    --------
    >>> reads_like_a_sentence("The tenant pays forty marks a year.")
    True
    >>> reads_like_a_sentence("8. Logo Rights."), reads_like_a_sentence("Who pays?")
    (False, False)
    """
    if len(title) > LONGEST_TITLE:
        return True
    is_sentence = _SENTENCE.fullmatch(title) is not None
    return is_sentence and _SMALL_WORD.search(title) is not None


def _units_of_blocks(
    text: str, blocks: Iterable[Block], cut: Callable[[str], Sequence[Unit]]
) -> list[Unit]:
    collector = _UnitCollector(text, cut)
    position = 0
    for block in blocks:
        collector.add_running_text(position, block.start)
        collector.add_block(block)
        position = block.end
    collector.add_running_text(position, len(text))
    return collector.all_units()


class _UnitCollector:
    """Collects units.

    Text that is read but not scored waits for the next unit.
    """

    def __init__(self, text: str, cut: Callable[[str], Sequence[Unit]]) -> None:
        self.text = text
        self.cut = cut
        self.units: list[Unit] = []
        self.waiting_start = 0  # all text before this offset is in a unit
        self.waiting_end = 0
        self.waiting_header = -1  # start of the header that waits

    def add_block(self, block: Block) -> None:
        """Add a block after all that was added before."""
        match block.kind:
            case "heading" if block.start == block.end:  # ends the headings above
                self.waiting_end = block.start
                self._score_waiting_text()
            case "heading" if reads_like_a_sentence(block.title):
                self.add_running_text(block.start, block.end)
            case "heading" | "header":
                self._let_wait(block)
            case "fence" | "row":
                self._add_record(block, by_sentences=False)
            case "turn":
                is_long = block.end - block.start > LONGEST_TURN
                self._add_record(block, by_sentences=is_long)
            case _:
                self.add_running_text(block.start, block.end)

    def add_running_text(self, start: int, end: int) -> None:
        """Cut running text into units, the first of which reads what waits."""
        self.waiting_end = end
        if trim_span(self.text, start, end) is None:
            return
        units = self.cut(self.text[start:end])
        if not units:
            return
        waiting = self._take_waiting_text(start)
        before = self.units[-1].model_text[-1:] if self.units else " "
        after = (waiting + units[0].model_text)[:1]
        if not before.isspace() and not after.isspace():
            # No word joins two stretches, since a segmenter may trim white space.
            waiting = "\n" + waiting
        for unit in units:
            model_text = waiting + unit.model_text
            self.units.append(Unit(start + unit.start, start + unit.end, model_text))
            waiting = ""
        self.waiting_start = end

    def all_units(self) -> list[Unit]:
        """All units.

        They include headings that nothing follows and headers of tables without rows.
        """
        self.waiting_end = len(self.text)
        self._score_waiting_text()
        remainder = self.text[self.waiting_start :]
        if remainder and self.units:
            last = self.units.pop()
            self.units.append(last._replace(model_text=last.model_text + remainder))
        return self.units

    def _let_wait(self, block: Block) -> None:
        """Read a heading, or the header of a table, before what follows."""
        if block.end - self.waiting_start > LONGEST_READ_WITH:
            self._score_waiting_text()
        self.waiting_end = block.end
        self.waiting_header = block.start if block.kind == "header" else -1

    def _add_record(self, block: Block, *, by_sentences: bool) -> None:
        """Make one unit of a fence, a row or a turn, or several of a long one."""
        self.waiting_end = block.end
        span = trim_span(self.text, block.start, block.end)
        if span is None:
            return
        header = "" if block.kind == "fence" else self._header_to_read(block, span)
        header_is_read = block.header is None or block.header[0] in (
            self.waiting_header,  # waits to be read
            block.start,  # begins the turn, as its speaker does
        )
        header_before = "" if header_is_read else header
        for start, end in self._parts_of_record(block, span, by_sentences=by_sentences):
            read_before = self.text[self.waiting_start : start] + header_before
            self.units.append(Unit(start, end, read_before + self.text[start:end]))
            self.waiting_start = end
            header_before = header
        # A row that names the columns is a unit of its own: the next one reads it
        # again, for scorers that take units one by one.
        self.waiting_header = -1

    def _header_to_read(self, block: Block, span: tuple[int, int]) -> str:
        """As much of a block's header as its other parts read again."""
        if block.header is None:
            return ""
        start, end = block.header
        length = min(span[1] - span[0], LONGEST_UNIT)
        characters = min(LEAST_HEADER + HEADER_SHARE * length, LONGEST_READ_WITH)
        return self.text[start : min(end, start + characters)] + "\n"

    def _parts_of_record(
        self, block: Block, span: tuple[int, int], *, by_sentences: bool
    ) -> Iterator[tuple[int, int]]:
        """Spans of the units of a fence, a row or a turn."""
        start, end = span
        starts = [start]
        if by_sentences:
            body = start
            if block.header is not None and block.header[0] == block.start:
                body = block.header[1]
            sentences = self.cut(self.text[body:end])
            starts += [body + sentence.start for sentence in sentences[1:]]
        for part in spans_between(iter(starts), end):
            trimmed_part = trim_span(self.text, *part) or part
            yield from cut_long_span(self.text, *trimmed_part, LONGEST_UNIT)

    def _take_waiting_text(self, start: int) -> str:
        """The waiting text before an offset, of at most `LONGEST_READ_WITH`."""
        if start - self.waiting_start > LONGEST_READ_WITH:
            self._score_waiting_text()
        waiting = self.text[self.waiting_start : start]
        self.waiting_start = start
        self.waiting_header = -1
        return waiting

    def _score_waiting_text(self) -> None:
        """Make units of the waiting text.

        It is done where nothing follows it, or where it is too long.
        """
        span = trim_span(self.text, self.waiting_start, self.waiting_end)
        if span is None:
            return
        for line in _LINE.finditer(self.text, *span):
            trimmed_line = trim_span(self.text, *line.span())
            if trimmed_line is None:
                continue
            for start, end in cut_long_span(self.text, *trimmed_line, LONGEST_UNIT):
                model_text = self.text[self.waiting_start : end]
                self.units.append(Unit(start, end, model_text))
                self.waiting_start = end
        self.waiting_header = -1
